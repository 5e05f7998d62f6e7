-- How long threads wait for a CPU.

INCLUDE PERFETTO MODULE sched.runnable;

CREATE PERFETTO VIEW _sched_with_thread_state_join AS
SELECT s.id AS sched_id, t.id AS thread_state_id, t.utid
FROM sched AS s
JOIN thread_state AS t ON t.ts = s.ts AND t.utid = s.utid
WHERE t.state = 'Running';

-- The wait before each running span.
CREATE PERFETTO TABLE sched_latency_for_running_interval(
  -- Row of thread_state: running.
  thread_state_id JOINID(thread_state.id),
  -- Row of sched.
  sched_id JOINID(sched.id),
  -- Row of thread.
  utid JOINID(thread.id),
  -- Row of thread_state: the wait.
  runnable_latency_id JOINID(thread_state.id),
  -- Its length.
  latency_dur LONG
) AS
SELECT
  j.thread_state_id,
  j.sched_id,
  j.utid,
  p.prev_runnable_id AS runnable_latency_id,
  r.dur AS latency_dur
FROM sched_previous_runnable_on_thread AS p
JOIN _sched_with_thread_state_join AS j ON j.thread_state_id = p.id
JOIN thread_state AS r ON r.id = p.prev_runnable_id;
