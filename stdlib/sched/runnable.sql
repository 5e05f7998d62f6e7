-- The wait for a CPU that came before a thread ran.

-- For each running span of a thread, the last time before that it was runnable.
CREATE PERFETTO TABLE sched_previous_runnable_on_thread(
  -- Row of thread_state: running.
  id JOINID(thread_state.id),
  -- The last runnable state before.
  prev_runnable_id JOINID(thread_state.id),
  -- The last one before that began by a wake-up.
  prev_wakeup_runnable_id JOINID(thread_state.id)
) AS
SELECT id, prev_runnable_id, prev_wakeup_runnable_id
FROM (
  SELECT
    id,
    state,
    max(iif(state IN ('R', 'R+'), id, NULL)) OVER before AS prev_runnable_id,
    max(iif(state IN ('R', 'R+') AND waker_utid IS NOT NULL, id, NULL)) OVER before AS prev_wakeup_runnable_id
  FROM thread_state
  WHERE dur != -1 OR state = 'Running'
  WINDOW before AS (PARTITION BY utid ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE state = 'Running'
ORDER BY id;
