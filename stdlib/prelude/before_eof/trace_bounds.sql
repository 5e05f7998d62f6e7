-- From when to when the trace has events.

-- Time of the first event.
CREATE PERFETTO FUNCTION trace_start()
-- Nanoseconds of the trace clock.
RETURNS TIMESTAMP
DELEGATES TO trace_start;

-- Time of the last event.
CREATE PERFETTO FUNCTION trace_end()
-- Nanoseconds of the trace clock.
RETURNS TIMESTAMP
DELEGATES TO trace_end;

-- From the first event to the last.
CREATE PERFETTO FUNCTION trace_dur()
-- Nanoseconds.
RETURNS DURATION
DELEGATES TO trace_dur;
