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
