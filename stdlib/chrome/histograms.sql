-- Samples of Chrome's histograms (category disabled-by-default-histogram_samples).

INCLUDE PERFETTO MODULE slices.with_context;

-- One row a sample.
CREATE PERFETTO TABLE chrome_histograms(
  name STRING,
  value LONG,
  ts TIMESTAMP,
  thread_name STRING,
  utid LONG,
  tid LONG,
  process_name STRING,
  upid LONG,
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
