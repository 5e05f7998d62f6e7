-- Samples of Chrome's histograms (category disabled-by-default-histogram_samples).

INCLUDE PERFETTO MODULE slices.with_context;

-- One row a sample.
CREATE PERFETTO TABLE chrome_histograms(
  -- Name of the histogram.
  name STRING,
  -- The sample.
  value LONG,
  -- When it was taken.
  ts TIMESTAMP,
  -- Name of the thread.
  thread_name STRING,
  -- Row of thread.
  utid LONG,
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid LONG,
  -- The kernel's number of the process.
  pid LONG
) AS
SELECT
  extract_arg(arg_set_id, 'chrome_histogram_sample.name') AS name,
  extract_arg(arg_set_id, 'chrome_histogram_sample.sample') AS value,
  ts,
  thread_name,
  utid,
  tid,
  process_name,
  upid,
  pid
FROM thread_slice
WHERE category = 'disabled-by-default-histogram_samples';
