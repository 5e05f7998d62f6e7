-- How many threads want or have a CPU at each moment.

INCLUDE PERFETTO MODULE intervals.overlap;

-- Threads that wait for a CPU after they were woken; those that another thread took the CPU from (R+) are not counted.
CREATE PERFETTO TABLE sched_runnable_thread_count(
  -- When the number changed.
  ts TIMESTAMP,
  -- From then on.
  runnable_thread_count LONG
) AS
SELECT ts, value AS runnable_thread_count
FROM intervals_overlap_count!(
  (SELECT ts, dur FROM thread_state WHERE state = 'R'), ts, dur
);

-- Threads in a sleep that signals do not end.
CREATE PERFETTO TABLE sched_uninterruptible_sleep_thread_count(
  -- When the number changed.
  ts TIMESTAMP,
  -- From then on.
  uninterruptible_sleep_thread_count LONG
) AS
SELECT ts, value AS uninterruptible_sleep_thread_count
FROM intervals_overlap_count!(
  (SELECT ts, dur FROM thread_state WHERE state = 'D'), ts, dur
);

-- CPUs that run something.
CREATE PERFETTO TABLE sched_active_cpu_count(
  -- When the number changed.
  ts TIMESTAMP,
  -- From then on.
  active_cpu_count LONG
) AS
SELECT ts, value AS active_cpu_count
FROM intervals_overlap_count!(
  (SELECT s.ts, s.dur FROM sched AS s JOIN thread AS t USING (utid) WHERE NOT coalesce(t.is_idle, 0)), ts, dur
);
