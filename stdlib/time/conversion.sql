-- Units of time to nanoseconds, which all timestamps and durations are in, and back.

-- Nanoseconds as nanoseconds.
CREATE PERFETTO FUNCTION time_from_ns(
  -- A number of nanoseconds.
  nanos LONG
)
-- Nanoseconds.
RETURNS TIMESTAMP AS
SELECT $nanos;

-- Microseconds as nanoseconds.
CREATE PERFETTO FUNCTION time_from_us(
  -- A number of microseconds.
  micros LONG
)
-- Nanoseconds.
RETURNS LONG AS
SELECT $micros * 1000;

-- Milliseconds as nanoseconds.
CREATE PERFETTO FUNCTION time_from_ms(
  -- A number of milliseconds.
  millis LONG
)
-- Nanoseconds.
RETURNS TIMESTAMP AS
SELECT $millis * 1000000;

-- Seconds as nanoseconds.
CREATE PERFETTO FUNCTION time_from_s(
  -- A number of seconds.
  seconds LONG
)
-- Nanoseconds.
RETURNS TIMESTAMP AS
SELECT $seconds * 1000000000;

-- Minutes as nanoseconds.
CREATE PERFETTO FUNCTION time_from_min(
  -- A number of minutes.
  minutes LONG
)
-- Nanoseconds.
RETURNS TIMESTAMP AS
SELECT $minutes * 60000000000;

-- Hours as nanoseconds.
CREATE PERFETTO FUNCTION time_from_hours(
  -- A number of hours.
  hours LONG
)
-- Nanoseconds.
RETURNS TIMESTAMP AS
SELECT $hours * 3600000000000;

-- Days as nanoseconds.
CREATE PERFETTO FUNCTION time_from_days(
  -- A number of days.
  days LONG
)
-- Nanoseconds.
RETURNS LONG AS
SELECT $days * 86400000000000;

-- Nanoseconds as whole nanoseconds.
CREATE PERFETTO FUNCTION time_to_ns(
  -- A number of nanoseconds.
  nanos TIMESTAMP
)
-- Nanoseconds.
RETURNS LONG AS
SELECT $nanos;

-- Nanoseconds as whole microseconds.
CREATE PERFETTO FUNCTION time_to_us(
  -- A number of nanoseconds.
  nanos TIMESTAMP
)
-- Microseconds, rounded towards zero.
RETURNS LONG AS
SELECT $nanos / 1000;

-- Nanoseconds as whole milliseconds.
CREATE PERFETTO FUNCTION time_to_ms(
  -- A number of nanoseconds.
  nanos TIMESTAMP
)
-- Milliseconds, rounded towards zero.
RETURNS LONG AS
SELECT $nanos / 1000000;

-- Nanoseconds as whole seconds.
CREATE PERFETTO FUNCTION time_to_s(
  -- A number of nanoseconds.
  nanos TIMESTAMP
)
-- Seconds, rounded towards zero.
RETURNS LONG AS
SELECT $nanos / 1000000000;

-- Nanoseconds as whole minutes.
CREATE PERFETTO FUNCTION time_to_min(
  -- A number of nanoseconds.
  nanos TIMESTAMP
)
-- Minutes, rounded towards zero.
RETURNS LONG AS
SELECT $nanos / 60000000000;

-- Nanoseconds as whole hours.
CREATE PERFETTO FUNCTION time_to_hours(
  -- A number of nanoseconds.
  nanos TIMESTAMP
)
-- Hours, rounded towards zero.
RETURNS LONG AS
SELECT $nanos / 3600000000000;

-- Nanoseconds as whole days.
CREATE PERFETTO FUNCTION time_to_days(
  -- A number of nanoseconds.
  nanos TIMESTAMP
)
-- Days, rounded towards zero.
RETURNS LONG AS
SELECT $nanos / 86400000000000;
