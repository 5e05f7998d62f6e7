-- Values of hardware counters at samples.

-- The value of a counter at a sample; NULL when it was not sampled.
CREATE PERFETTO FUNCTION linux_perf_counter_for_sample(
  -- Row of perf_sample.
  sample_id JOINID(perf_sample.id),
  -- Name of the counter.
  counter_name STRING
)
-- The value.
RETURNS DOUBLE AS
SELECT c.value
FROM __intrinsic_profiler_sample AS s
JOIN __intrinsic_profiler_counter_set AS k ON k.counter_set_id = s.counter_set_id
JOIN __intrinsic_counter AS c ON c.id = k.counter_id
JOIN __intrinsic_track AS t ON t.id = c.track_id
WHERE s.id = $sample_id AND t.name = $counter_name
LIMIT 1;

-- Samples with all counters that were read with them, one row a counter.
CREATE PERFETTO VIEW linux_perf_sample_with_counters(
  -- Row of perf_sample.
  sample_id JOINID(perf_sample.id),
  -- Time of the sample.
  ts TIMESTAMP,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Number of the CPU.
  cpu LONG,
  -- User, kernel …
  cpu_mode STRING,
  -- Row of stack_profile_callsite.
  callsite_id JOINID(stack_profile_callsite.id),
  -- Why the stack could not be walked.
  unwind_error STRING,
  -- Row of perf_session.
  perf_session_id JOINID(perf_session.id),
  -- Row of counter.
  counter_id JOINID(counter.id),
  -- Row of track.
  track_id JOINID(track.id),
  -- Value of the counter.
  counter_value DOUBLE
) AS
SELECT
  s.id AS sample_id,
  s.ts,
  s.utid,
  s.cpu,
  s.cpu_mode,
  s.callsite_id,
  s.unwind_error,
  s.perf_session_id,
  c.id AS counter_id,
  c.track_id,
  c.value AS counter_value
FROM perf_sample AS s
JOIN __intrinsic_profiler_sample AS p ON p.id = s.id
JOIN __intrinsic_profiler_counter_set AS k ON k.counter_set_id = p.counter_set_id
JOIN __intrinsic_counter AS c ON c.id = k.counter_id;
