-- Names of threads without what numbers them.

-- "binder:5543_E" is a "binder", "pool-3-thread-5" a "pool".
CREATE PERFETTO FUNCTION android_standardize_thread_name(
  -- Name of a thread.
  thread_name STRING
)
-- The name that such threads have in common.
RETURNS STRING AS
SELECT
  iif(
    $thread_name GLOB 'kworker/*',
    'kworker',
    __intrinsic_strip_hex(
      str_split(str_split(str_split(str_split($thread_name, '-', 0), '[', 0), ':', 0), ' ', 0),
      1
    )
  );

-- Of the threads that ended within so many nanoseconds (NULL: of all), how many began at most within the window, in nanoseconds:
-- by process and what their names have in common.
CREATE PERFETTO FUNCTION _android_thread_creation_spam_per_thread(
  max_thread_dur DOUBLE,
  sliding_window_dur DOUBLE
)
RETURNS TABLE(
  -- Name of the process.
  process_name STRING,
  -- The process: row of process.
  upid JOINID(process.id),
  -- What the names of the threads have in common.
  thread_name_prefix STRING,
  -- The most in one window.
  max_count_per_sec LONG
) AS
WITH
  counted AS (
    SELECT
      upid,
      p.name AS process_name,
      android_standardize_thread_name(t.name) AS thread_name_prefix,
      count(t.start_ts) OVER (
        PARTITION BY upid, android_standardize_thread_name(t.name)
        ORDER BY t.start_ts
        RANGE BETWEEN CURRENT ROW AND CASE WHEN $sliding_window_dur IS NULL THEN 0 ELSE cast_int!($sliding_window_dur) END FOLLOWING
      ) AS n
    FROM thread AS t
    JOIN process AS p USING (upid)
    WHERE $max_thread_dur IS NULL OR ($max_thread_dur AND t.end_ts - t.start_ts <= $max_thread_dur)
  )
SELECT process_name, upid, thread_name_prefix, max(n) AS max_count_per_sec
FROM counted
GROUP BY upid, thread_name_prefix
HAVING max(n) > 0
ORDER BY max_count_per_sec DESC;

-- The same by process.
CREATE PERFETTO FUNCTION _android_thread_creation_spam_per_process(
  max_thread_dur DOUBLE,
  sliding_window_dur DOUBLE
)
RETURNS TABLE(
  -- Name of the process.
  process_name STRING,
  -- The process: row of process.
  upid JOINID(process.id),
  -- The most in one window.
  max_count_per_sec LONG
) AS
WITH
  counted AS (
    SELECT
      upid,
      p.name AS process_name,
      count(t.start_ts) OVER (
        PARTITION BY upid
        ORDER BY t.start_ts
        RANGE BETWEEN CURRENT ROW AND CASE WHEN $sliding_window_dur IS NULL THEN 0 ELSE cast_int!($sliding_window_dur) END FOLLOWING
      ) AS n
    FROM thread AS t
    JOIN process AS p USING (upid)
    WHERE $max_thread_dur IS NULL OR ($max_thread_dur AND t.end_ts - t.start_ts <= $max_thread_dur)
  )
SELECT process_name, upid, max(n) AS max_count_per_sec
FROM counted
GROUP BY upid
HAVING max(n) > 0
ORDER BY max_count_per_sec DESC;
