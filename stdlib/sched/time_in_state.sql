-- How long threads and CPUs spend in each state.

INCLUDE PERFETTO MODULE intervals.intersect;

CREATE PERFETTO MACRO _case_for_state(state Expr)
RETURNS Expr AS max(iif(state = $state, percentage_in_state, NULL));

-- Time of each thread in each state. As in Perfetto, an unfinished state counts -1.
CREATE PERFETTO TABLE sched_time_in_state_for_thread(
  -- Row of thread.
  utid JOINID(thread.id),
  -- All of its time in the trace.
  total_runtime LONG,
  -- State of the thread, in the kernel's letters.
  state STRING,
  -- Time in it.
  time_in_state LONG,
  -- Its part of all, in per cent.
  percentage_in_state LONG
) AS
SELECT
  utid,
  total_runtime,
  state,
  time_in_state,
  time_in_state * 100 / total_runtime AS percentage_in_state
FROM (
  SELECT
    utid,
    sum(time_in_state) OVER (PARTITION BY utid) AS total_runtime,
    state,
    time_in_state
  FROM (
    SELECT utid, state, sum(dur) AS time_in_state
    FROM thread_state
    GROUP BY utid, state
  )
);

-- The same with one row a thread, in per cent; NULL: the thread was never in that state.
CREATE PERFETTO TABLE sched_percentage_of_time_in_state(
  -- Row of thread.
  utid JOINID(thread.id),
  -- On a CPU.
  running LONG,
  -- Waiting for one.
  runnable LONG,
  -- Waiting for one, having been pushed off.
  runnable_preempted LONG,
  -- Percentage of the time asleep.
  sleeping LONG,
  -- Sleeping in a way that signals do not end.
  uninterruptible_sleep LONG,
  -- In any of the states T, t, X, Z, x, I, K, W, P, N.
  other LONG
) AS
SELECT
  utid,
  _case_for_state!('Running') AS running,
  _case_for_state!('R') AS runnable,
  _case_for_state!('R+') AS runnable_preempted,
  _case_for_state!('S') AS sleeping,
  _case_for_state!('D') AS uninterruptible_sleep,
  sum(iif(state IN ('T', 't', 'X', 'Z', 'x', 'I', 'K', 'W', 'P', 'N'), time_in_state, NULL)) * 100 / total_runtime AS other
FROM sched_time_in_state_for_thread
GROUP BY utid;

-- Time of one thread in each state within a window.
CREATE PERFETTO FUNCTION sched_time_in_state_for_thread_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION,
  -- Row of thread.
  utid JOINID(thread.id)
)
RETURNS TABLE(
  -- State of the thread, in the kernel's letters.
  state STRING,
  -- Waiting for a device?
  io_wait BOOL,
  -- Kernel function that it was blocked in.
  blocked_function LONG,
  -- Time in the state.
  dur DURATION
) AS
SELECT t.state, t.io_wait, t.blocked_function, sum(ii.dur) AS dur
FROM _interval_intersect_single!(
  $ts, $dur,
  (SELECT id, ts, dur FROM thread_state WHERE utid = $utid AND dur > 0)
) AS ii
JOIN thread_state AS t USING (id)
GROUP BY t.state, t.io_wait, t.blocked_function
ORDER BY dur DESC;

-- The same, apart by CPU.
CREATE PERFETTO FUNCTION sched_time_in_state_and_cpu_for_thread_in_interval(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION,
  -- Row of thread.
  utid JOINID(thread.id)
)
RETURNS TABLE(
  -- State of the thread, in the kernel's letters.
  state STRING,
  -- Waiting for a device?
  io_wait BOOL,
  -- Number of the CPU.
  cpu LONG,
  -- Kernel function that it was blocked in.
  blocked_function LONG,
  -- Time in the state.
  dur DURATION
) AS
SELECT t.state, t.io_wait, t.cpu, t.blocked_function, sum(ii.dur) AS dur
FROM _interval_intersect_single!(
  $ts, $dur,
  (SELECT id, ts, dur FROM thread_state WHERE utid = $utid AND dur > 0)
) AS ii
JOIN thread_state AS t USING (id)
GROUP BY t.state, t.io_wait, t.cpu, t.blocked_function
ORDER BY dur DESC;

-- Time on a CPU within a window by the state in which threads left it.
CREATE PERFETTO FUNCTION sched_time_in_state_for_cpu_in_interval(
  -- Number of the CPU.
  cpu LONG,
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur LONG
)
RETURNS TABLE(
  -- State of the thread when it left the CPU.
  end_state STRING,
  -- Time that such threads ran.
  dur LONG
) AS
SELECT s.end_state, sum(ii.dur) AS dur
FROM _interval_intersect_single!(
  $ts, $dur,
  (SELECT id, ts, dur FROM sched WHERE cpu = $cpu AND dur != -1)
) AS ii
JOIN sched AS s USING (id)
GROUP BY s.end_state;
