-- Functions that PerfettoSQL has beside those of SQLite. They are built in; this is what they take and return.

-- Whether a regular expression matches anywhere in a text; `input REGEXP pattern` says the same.
CREATE PERFETTO FUNCTION regexp(
  -- Perl-compatible regular expression.
  pattern STRING,
  -- Where to look.
  input STRING
)
-- Whether it matches; NULL for a NULL.
RETURNS BOOL
DELEGATES TO regexp;

-- Whether a regular expression matches anywhere in a text, with flags.
CREATE PERFETTO FUNCTION regexp(
  -- Perl-compatible regular expression.
  pattern STRING,
  -- Where to look.
  input STRING,
  -- i: upper and lower case are the same; c: they differ; the last one counts.
  flags STRING
)
-- Whether it matches; NULL for a NULL.
RETURNS BOOL
DELEGATES TO regexp;

-- The part of a text that a regular expression matches first.
CREATE PERFETTO FUNCTION regexp_extract(
  -- Where to look.
  input STRING,
  -- Perl-compatible regular expression with at most one group.
  regex STRING
)
-- What the group matched, without a group the whole match; NULL when nothing matches.
RETURNS STRING
DELEGATES TO regexp_extract;

-- A text with all matches of a regular expression replaced.
CREATE PERFETTO FUNCTION regexp_replace_simple(
  -- Where to look.
  input STRING,
  -- Perl-compatible regular expression.
  regex STRING,
  -- What to put there.
  replacement STRING
)
-- The new text.
RETURNS STRING
DELEGATES TO regexp_replace_simple;

-- The bytes of a text in reverse order.
CREATE PERFETTO FUNCTION reverse(
  -- The text.
  input STRING
)
-- The text backwards.
RETURNS STRING
DELEGATES TO reverse;

-- Bytes as text in base64.
CREATE PERFETTO FUNCTION base64_encode(
  -- The bytes.
  input BYTES
)
-- Text in base64, padded.
RETURNS STRING
DELEGATES TO base64_encode;

-- The bytes that a text in base64 stands for.
CREATE PERFETTO FUNCTION base64_decode(
  -- Text in base64.
  input STRING
)
-- The bytes; NULL when the text is not base64.
RETURNS BYTES
DELEGATES TO base64_decode;

-- The readable name of a C++ or Rust symbol.
CREATE PERFETTO FUNCTION demangle(
  -- Name in the object file.
  input STRING
)
-- The readable name; NULL when it is not a mangled one.
RETURNS STRING
DELEGATES TO demangle;

-- The number that hexadecimal digits stand for.
CREATE PERFETTO FUNCTION unhex(
  -- Digits, 0x in front or not.
  input STRING
)
-- The number.
RETURNS LONG
DELEGATES TO unhex;

-- A time of the trace as date and time of day (UTC, ISO 8601).
CREATE PERFETTO FUNCTION abs_time_str(
  -- Time in nanoseconds of the trace clock.
  ts LONG
)
-- The text; NULL when the trace does not relate its clock to the time of day.
RETURNS STRING
DELEGATES TO abs_time_str;

-- A time of the trace on CLOCK_MONOTONIC of the host.
CREATE PERFETTO FUNCTION to_monotonic(
  -- Time in nanoseconds of the trace clock.
  ts LONG
)
-- Nanoseconds; NULL when the trace does not relate the clocks.
RETURNS LONG
DELEGATES TO to_monotonic;

-- A time of the trace as the time of day.
CREATE PERFETTO FUNCTION to_realtime(
  -- Time in nanoseconds of the trace clock.
  ts LONG
)
-- Nanoseconds since 1970; NULL when the trace does not relate the clocks.
RETURNS LONG
DELEGATES TO to_realtime;

-- A duration in groups that are easy to read: hours:minutes:seconds milli micro nano.
CREATE PERFETTO FUNCTION to_timecode(
  -- The duration in nanoseconds.
  ts LONG
)
-- The text, for instance 01:02:03 004 005 006.
RETURNS STRING
DELEGATES TO to_timecode;

-- Natural logarithm.
CREATE PERFETTO FUNCTION ln(
  -- A positive number.
  input DOUBLE
)
-- The logarithm; NULL for 0 and below.
RETURNS DOUBLE
DELEGATES TO ln;

-- e to the power of a number.
CREATE PERFETTO FUNCTION exp(
  -- The power.
  input DOUBLE
)
-- The result.
RETURNS DOUBLE
DELEGATES TO exp;

-- Square root.
CREATE PERFETTO FUNCTION sqrt(
  -- A number from 0.
  input DOUBLE
)
-- The root; NULL below 0.
RETURNS DOUBLE
DELEGATES TO sqrt;
