-- The benchmark Speedometer 3, by the marks that it makes. Times are more exact than the benchmark's own.

-- Slices of pages' own timing: (id, ts, dur, name, track_id).
CREATE PERFETTO VIEW _chrome_user_timing AS
SELECT id, ts, dur, name, track_id FROM slice WHERE category = 'blink.user_timing';

-- Those of tests, "SUITE.TEST-sync", "…-async" and "…-start": (id, ts, dur, name, track_id, suite_name, test_name, kind).
CREATE PERFETTO TABLE _chrome_speedometer_3_marks AS
SELECT
  *,
  regexp_extract(name, '^([^.]+)[.]') AS suite_name,
  regexp_extract(name, '^[^.]+[.](.+)-[a-z]+$') AS test_name,
  regexp_extract(name, '-([a-z]+)$') AS kind
FROM _chrome_user_timing
WHERE regexp(
  '^(TodoMVC-|NewsSite-|Editor-|Charts-|React-Stockcharts-SVG[.]|Perf-Dashboard[.]).*-(sync|async|start)$', name
);

-- The times of tests that the trace has, by name.
CREATE PERFETTO VIEW _chrome_speedometer_3_measure_name(
  -- Name of the slice.
  name STRING,
  -- The suite.
  suite_name STRING,
  -- The test.
  test_name STRING,
  -- 'sync' or 'async'.
  measure_type STRING
) AS
SELECT DISTINCT name, suite_name, test_name, kind AS measure_type
FROM _chrome_speedometer_3_marks
WHERE kind IN ('sync', 'async');

-- Runs: (ts, dur, name, iteration).
CREATE PERFETTO TABLE _chrome_speedometer_3_iteration_slice AS
SELECT ts, dur, name, cast_int!(substr(name, 11)) AS iteration
FROM _chrome_user_timing
WHERE regexp('^iteration-[0-9]+$', name);

-- Times that count: of each test the synchronous part and the asynchronous one.
CREATE PERFETTO TABLE chrome_speedometer_3_measure(
  -- When it began.
  ts TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- Its name.
  name STRING,
  -- Number of the run, as the benchmark counts.
  iteration LONG,
  -- The suite.
  suite_name STRING,
  -- The test.
  test_name STRING,
  -- 'sync' or 'async'.
  measure_type STRING
) AS
SELECT m.ts, m.dur, m.name, i.iteration, m.suite_name, m.test_name, m.kind AS measure_type
FROM _chrome_speedometer_3_marks AS m
JOIN _chrome_speedometer_3_iteration_slice AS i ON m.ts >= i.ts AND m.ts < i.ts + i.dur
WHERE m.kind IN ('sync', 'async')
ORDER BY m.ts;

-- Runs with what they come to.
CREATE PERFETTO TABLE chrome_speedometer_3_iteration(
  -- When it began.
  ts TIMESTAMP,
  -- How long it took.
  dur DURATION,
  -- Its name.
  name STRING,
  -- Number of the run, as the benchmark counts.
  iteration LONG,
  -- Geometric mean of the times of its suites, in ms.
  geomean DOUBLE,
  -- What the benchmark would show for it.
  score DOUBLE
) AS
WITH
  suites AS (
    SELECT iteration, sum(dur / 1e6) AS ms FROM chrome_speedometer_3_measure GROUP BY iteration, suite_name
  ),
  means AS (SELECT iteration, exp(avg(ln(ms))) AS geomean FROM suites GROUP BY iteration)
SELECT i.ts, i.dur, i.name, i.iteration, m.geomean, 1000.0 / m.geomean AS score
FROM means AS m
JOIN _chrome_speedometer_3_iteration_slice AS i USING (iteration)
ORDER BY i.ts;

-- What the benchmark would show: the mean of its runs.
CREATE PERFETTO FUNCTION chrome_speedometer_3_score()
-- NULL when it was not run.
RETURNS DOUBLE AS
SELECT avg(score) FROM chrome_speedometer_3_iteration;

-- The thread that it ran on.
CREATE PERFETTO FUNCTION chrome_speedometer_3_renderer_main_utid()
-- NULL when it was not run.
RETURNS LONG AS
SELECT t.utid
FROM _chrome_speedometer_3_marks AS m
JOIN thread_track AS t ON t.id = m.track_id
WHERE m.kind = 'start'
LIMIT 1;
