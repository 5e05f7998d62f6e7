-- The benchmark Speedometer 2.1, by the marks that it makes. Times are more exact than the benchmark's own.

-- Marks of tests, "SUITE.TEST-start", "…-sync-end" and "…-async-end", with the run: how many of the same name there were, with
-- it: (ts, track_id, suite_name, test_name, kind, iteration). All suites are called "…-TodoMVC".
CREATE PERFETTO TABLE _chrome_speedometer_2_1_marks AS
SELECT
  ts,
  track_id,
  regexp_extract(name, '^([^.]+)[.]') AS suite_name,
  regexp_extract(name, '^[^.]+[.]([A-Za-z0-9]+)-') AS test_name,
  regexp_extract(name, '-(start|sync-end|async-end)$') AS kind,
  row_number() OVER (PARTITION BY name ORDER BY ts) AS iteration
FROM slice
WHERE category = 'blink.user_timing' AND regexp('-TodoMVC[.][A-Za-z0-9]+-(start|sync-end|async-end)$', name);

-- The marks that the trace has, by name.
CREATE PERFETTO VIEW _chrome_speedometer_2_1_mark_name(
  -- Name of the mark.
  name STRING,
  -- The suite.
  suite_name STRING,
  -- The test.
  test_name STRING,
  -- 'start', 'sync-end' or 'async-end'.
  mark_type STRING
) AS
SELECT DISTINCT suite_name || '.' || test_name || '-' || kind AS name, suite_name, test_name, kind AS mark_type
FROM _chrome_speedometer_2_1_marks;

-- Times that count: from start to the end of the synchronous part, and from there to the end of the asynchronous one. Runs of a
-- test that miss a mark are left out.
CREATE PERFETTO TABLE chrome_speedometer_2_1_measure(
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
WITH
  runs AS (
    SELECT
      iteration,
      suite_name,
      test_name,
      max(iif(kind = 'start', ts, NULL)) AS start_ts,
      max(iif(kind = 'sync-end', ts, NULL)) AS sync_end_ts,
      max(iif(kind = 'async-end', ts, NULL)) AS async_end_ts
    FROM _chrome_speedometer_2_1_marks
    GROUP BY iteration, suite_name, test_name
    HAVING count() = 3
  ),
  parts AS (
    SELECT start_ts AS ts, sync_end_ts - start_ts AS dur, iteration, suite_name, test_name, 'sync' AS measure_type FROM runs
    UNION ALL
    SELECT sync_end_ts, async_end_ts - sync_end_ts, iteration, suite_name, test_name, 'async' FROM runs
  )
SELECT ts, dur, suite_name || '.' || test_name || '-' || measure_type AS name, iteration, suite_name, test_name, measure_type
FROM parts
ORDER BY ts;

-- Runs with what they come to; from the start of the first test to the end of the last.
CREATE PERFETTO TABLE chrome_speedometer_2_1_iteration(
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
    SELECT iteration, sum(dur / 1e6) AS ms, min(ts) AS ts, max(ts + dur) AS ts_end
    FROM chrome_speedometer_2_1_measure
    GROUP BY iteration, suite_name
  ),
  means AS (
    SELECT iteration, min(ts) AS ts, max(ts_end) AS ts_end, exp(avg(ln(ms))) AS geomean FROM suites GROUP BY iteration
  )
SELECT
  ts, ts_end - ts AS dur, 'iteration-' || iteration AS name, iteration, geomean, 1000.0 / geomean * 60.0 / 3.0 AS score
FROM means
ORDER BY ts;

-- What the benchmark would show: the mean of its runs.
CREATE PERFETTO FUNCTION chrome_speedometer_2_1_score()
-- NULL when it was not run.
RETURNS DOUBLE AS
SELECT avg(score) FROM chrome_speedometer_2_1_iteration;

-- The thread that it ran on.
CREATE PERFETTO FUNCTION chrome_speedometer_2_1_renderer_main_utid()
-- NULL when it was not run.
RETURNS LONG AS
SELECT t.utid
FROM _chrome_speedometer_2_1_marks AS m
JOIN thread_track AS t ON t.id = m.track_id
LIMIT 1;
