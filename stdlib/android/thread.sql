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
    __intrinsic_strip_hex(coalesce(regexp_extract($thread_name, '^([^-\[: ]+)'), $thread_name), 1)
  );

-- Threads that ended within `max_thread_dur` s: which process and sort of thread began how many of them at most within
-- `sliding_window_dur` s.
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
  -- The most in one second.
  max_count_per_sec LONG
) AS
WITH
  begun AS (
    SELECT p.name AS process_name, upid, android_standardize_thread_name(t.name) AS thread_name_prefix, t.start_ts AS ts
    FROM thread AS t
    JOIN process AS p USING (upid)
    WHERE t.start_ts IS NOT NULL AND t.end_ts - t.start_ts <= $max_thread_dur * 1e9
  ),
  counted AS (
    SELECT
      *,
      count() OVER (
        PARTITION BY upid, thread_name_prefix
        ORDER BY ts
        RANGE BETWEEN CURRENT ROW AND cast_int!($sliding_window_dur * 1e9) FOLLOWING
      ) AS n
    FROM begun
  )
SELECT process_name, upid, thread_name_prefix, cast_int!(max(n) / $sliding_window_dur) AS max_count_per_sec
FROM counted
GROUP BY upid, thread_name_prefix
ORDER BY max_count_per_sec DESC;

-- The same by process: its sort of threads that came in the greatest number.
CREATE PERFETTO FUNCTION _android_thread_creation_spam_per_process(
  max_thread_dur DOUBLE,
  sliding_window_dur DOUBLE
)
RETURNS TABLE(
  -- Name of the process.
  process_name STRING,
  -- The process: row of process.
  upid JOINID(process.id),
  -- The most in one second.
  max_count_per_sec LONG
) AS
SELECT process_name, upid, max(max_count_per_sec) AS max_count_per_sec
FROM _android_thread_creation_spam_per_thread($max_thread_dur, $sliding_window_dur)
GROUP BY upid
ORDER BY max_count_per_sec DESC;
