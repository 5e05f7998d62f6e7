-- The benchmark Speedometer, of the version that the trace has.

INCLUDE PERFETTO MODULE chrome.speedometer_2_1;
INCLUDE PERFETTO MODULE chrome.speedometer_3;

-- '3' or '2.1': the one with more times.
CREATE PERFETTO FUNCTION _chrome_speedometer_version()
RETURNS STRING AS
SELECT
  iif(
    (SELECT count() FROM chrome_speedometer_3_measure) > (SELECT count() FROM chrome_speedometer_2_1_measure), '3', '2.1'
  );

-- Times that count: of each test the synchronous part and the asynchronous one.
CREATE PERFETTO TABLE chrome_speedometer_measure(
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
SELECT * FROM chrome_speedometer_2_1_measure WHERE _chrome_speedometer_version() = '2.1'
UNION ALL
SELECT * FROM chrome_speedometer_3_measure WHERE _chrome_speedometer_version() = '3';

-- Runs with what they come to.
CREATE PERFETTO TABLE chrome_speedometer_iteration(
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
SELECT * FROM chrome_speedometer_2_1_iteration WHERE _chrome_speedometer_version() = '2.1'
UNION ALL
SELECT * FROM chrome_speedometer_3_iteration WHERE _chrome_speedometer_version() = '3';

-- What the benchmark would show: the mean of its runs.
CREATE PERFETTO FUNCTION chrome_speedometer_score()
-- NULL when it was not run.
RETURNS DOUBLE AS
SELECT avg(score) FROM chrome_speedometer_iteration;

-- The thread that it ran on.
CREATE PERFETTO FUNCTION chrome_speedometer_renderer_main_utid()
-- NULL when it was not run.
RETURNS LONG AS
SELECT
  iif(
    _chrome_speedometer_version() = '3',
    chrome_speedometer_3_renderer_main_utid(),
    chrome_speedometer_2_1_renderer_main_utid()
  );
