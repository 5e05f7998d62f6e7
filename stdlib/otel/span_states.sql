-- What the threads of spans did meanwhile: running, waiting for a CPU, asleep.

INCLUDE PERFETTO MODULE intervals.intersect;

-- Time of each span by the states of its thread. There are rows for spans whose thread is known, and whose machine was
-- recorded by a kernel trace at that time.
CREATE PERFETTO TABLE otel_span_states(
  -- Row of otel_span.
  span_id LONG,
  -- Name of the span.
  name STRING,
  -- Service that it ran in.
  service STRING,
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Row of thread.
  utid JOINID(thread.id),
  -- State, as in thread_state.
  state STRING,
  -- Waiting for a device?
  io_wait BOOL,
  -- Kernel function that it was blocked in.
  blocked_function STRING,
  -- Time in the state, in nanoseconds.
  dur DURATION,
  -- Its part of the span, from 0 to 1.
  part DOUBLE
) AS
WITH
  spans AS (
    SELECT id, ts, iif(dur = -1, trace_end() - ts, dur) AS dur, utid
    FROM otel_span
    WHERE utid IS NOT NULL AND iif(dur = -1, trace_end() - ts, dur) > 0
  )
SELECT
  s.id AS span_id,
  s.name,
  s.service,
  s.slice_id,
  s.utid,
  st.state,
  st.io_wait,
  st.blocked_function,
  sum(ii.dur) AS dur,
  sum(ii.dur) * 1.0 / iif(s.dur = -1, trace_end() - s.ts, s.dur) AS part
FROM _interval_intersect!(
  (
    (SELECT id, ts, dur, utid FROM spans),
    (SELECT id, ts, iif(dur = -1, trace_end() - ts, dur) AS dur, utid FROM thread_state WHERE utid IN (SELECT utid FROM spans))
  ),
  (utid)
) AS ii
JOIN otel_span AS s ON s.id = ii.id_0
JOIN thread_state AS st ON st.id = ii.id_1
GROUP BY s.id, st.state, st.io_wait, st.blocked_function
ORDER BY s.id, dur DESC;
