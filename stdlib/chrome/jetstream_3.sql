-- The benchmark JetStream 3, by the marks that it makes.

-- How many of a benchmark's runs count as its worst; four where nothing is said.
CREATE PERFETTO TABLE _chrome_jetstream_3_worst AS
WITH
  counts(pattern, n) AS (
    VALUES
      ('bigint-bigdenary', 16),
      ('proxy-mobx', 12),
      ('async-fs', 6),
      ('sync-fs', 6),
      ('cdjs', 3),
      ('mobx-startup', 3),
      ('argon2-wasm', 3),
      ('segmentation', 3),
      ('typescript-octane', 2),
      ('json-stringify-inspector', 2),
      ('json-parse-inspector', 2),
      ('bigint-paillier', 2),
      ('jsdom-d3-startup', 2),
      ('sqlite3-wasm', 2),
      ('Dart-flute-*', 2),
      ('8bitbench-wasm', 2),
      ('dotnet-*-wasm', 2),
      ('*-wtb', 2),
      ('bigint-noble-bls12-381', 1),
      ('Kotlin-compose-wasm', 1),
      ('transformersjs-whisper-wasm', 1),
      ('*-intl', 1)
  )
SELECT pattern, n FROM counts;

-- The benchmarks of the trace: their group, and how many of their runs count as the worst. top_level_name is NULL for one that is
-- judged alone.
CREATE PERFETTO VIEW _chrome_jetstream_3_benchmark_name(
  -- The benchmark.
  name STRING,
  -- The group that it is judged with.
  top_level_name STRING,
  -- How many of its runs count as the worst.
  worst_case_count LONG
) AS
SELECT
  name,
  CASE WHEN name GLOB '*-intl' THEN 'intl' WHEN name GLOB '*-SP' THEN 'Sunspider' END AS top_level_name,
  coalesce((SELECT w.n FROM _chrome_jetstream_3_worst AS w WHERE names.name GLOB w.pattern LIMIT 1), 4) AS worst_case_count
FROM (
  SELECT DISTINCT regexp_extract(name, '^(.+)-iteration-[0-9]+$') AS name
  FROM slice
  WHERE category = 'blink.user_timing' AND dur > 0 AND name GLOB '?*-iteration-*'
) AS names
WHERE name IS NOT NULL;

-- Runs, "NAME-iteration-N": (id, ts, dur, name, top_level_name, worst_case_count, iteration).
CREATE PERFETTO TABLE _chrome_jetstream_3_measure_slice AS
WITH
  runs AS (
    SELECT
      id,
      ts,
      dur,
      regexp_extract(name, '^(.+)-iteration-[0-9]+$') AS name,
      cast_int!(regexp_extract(name, '-iteration-([0-9]+)$')) AS iteration
    FROM slice
    WHERE category = 'blink.user_timing' AND dur > 0 AND name GLOB '?*-iteration-*'
  )
SELECT
  id,
  ts,
  dur,
  name,
  coalesce(b.top_level_name, name) AS top_level_name,
  b.worst_case_count,
  iteration
FROM runs
JOIN _chrome_jetstream_3_benchmark_name AS b USING (name)
WHERE iteration IS NOT NULL;

-- The threads that it ran on: those of its first benchmark; of each that has runs, where the first was left out.
CREATE PERFETTO FUNCTION chrome_jetstream_3_renderer_main_utid()
RETURNS TABLE(
  -- The thread.
  utid LONG
) AS
WITH
  marks AS (
    SELECT DISTINCT t.utid, s.name = 'Air' AS is_first
    FROM slice AS s
    JOIN thread_track AS t ON t.id = s.track_id
    WHERE
      s.category = 'blink.user_timing'
      AND (s.name = 'Air' OR s.name IN (SELECT name FROM _chrome_jetstream_3_measure_slice))
  )
SELECT DISTINCT utid FROM marks WHERE is_first = (SELECT max(is_first) FROM marks);

-- The parts of WSL.
CREATE PERFETTO VIEW _chrome_jetstream_3_wsl_slice AS
SELECT id, ts, dur, name
FROM slice
WHERE category = 'blink.user_timing' AND dur > 0 AND name GLOB 'WSL-*';

-- Times that count: the worst ones, the others, the first ones and those of WSL. Each is here once, though the worst ones count for the
-- average too.
CREATE PERFETTO TABLE chrome_jetstream_3_measure(
  -- The slice.
  id LONG,
  -- Its start.
  ts TIMESTAMP,
  -- Its length.
  dur DURATION,
  -- The benchmark.
  name STRING,
  -- The group that it is judged with; itself when it is alone.
  top_level_name STRING,
  -- Number of the run, from 0.
  iteration LONG,
  -- 'First', 'Worst', 'Average' (all others), or the part of WSL.
  subtest STRING
) AS
WITH
  ranked AS (
    SELECT *, rank() OVER (PARTITION BY name ORDER BY dur DESC) <= worst_case_count AS is_worst
    FROM _chrome_jetstream_3_measure_slice
    WHERE iteration > 0
  )
SELECT id, ts, dur, name, top_level_name, iteration, 'Worst' AS subtest
FROM ranked
WHERE is_worst
UNION ALL
SELECT id, ts, dur, name, top_level_name, iteration, 'Average'
FROM ranked
WHERE NOT is_worst
UNION ALL
SELECT id, ts, dur, name, top_level_name, iteration, 'First'
FROM _chrome_jetstream_3_measure_slice
WHERE iteration = 0
UNION ALL
SELECT id, ts, dur, 'WSL', 'WSL', 0, name
FROM _chrome_jetstream_3_wsl_slice;

-- What the first, the worst and all times of each benchmark come to: 5000 by their mean in ms.
CREATE PERFETTO VIEW _chrome_jetstream_3_subtest_score AS
SELECT top_level_name, name, subtest, 5000.0 / (avg(dur) / 1e6) AS score
FROM (
  SELECT top_level_name, name, subtest, dur FROM chrome_jetstream_3_measure
  UNION ALL
  SELECT top_level_name, name, 'Average', dur FROM chrome_jetstream_3_measure WHERE subtest = 'Worst'
)
GROUP BY top_level_name, name, subtest;

-- What each benchmark comes to: the geometric mean of those.
CREATE PERFETTO VIEW _chrome_jetstream_3_leaf_benchmark_score AS
SELECT top_level_name, name, exp(avg(ln(score))) AS score
FROM _chrome_jetstream_3_subtest_score
GROUP BY top_level_name, name;

-- What each benchmark and group comes to: the geometric mean of its parts, which are 5000 by their mean time in ms.
CREATE PERFETTO TABLE chrome_jetstream_3_benchmark_score(
  -- The group that it is judged with; itself when it is alone.
  top_level_name STRING,
  -- What it comes to.
  score DOUBLE
) AS
SELECT top_level_name, exp(avg(ln(score))) AS score
FROM _chrome_jetstream_3_leaf_benchmark_score
GROUP BY top_level_name;

-- What the benchmark would show: the geometric mean of all.
CREATE PERFETTO FUNCTION chrome_jetstream_3_score()
-- NULL when it was not run.
RETURNS DOUBLE AS
SELECT exp(avg(ln(score))) FROM chrome_jetstream_3_benchmark_score;
