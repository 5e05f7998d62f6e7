-- The wait for a CPU that came before a thread ran.

-- For each finished running span of a thread, the last time before that it was runnable.
CREATE PERFETTO TABLE sched_previous_runnable_on_thread(
  -- Row of thread_state: running.
  id JOINID(thread_state.id),
  -- The last runnable state before.
  prev_runnable_id JOINID(thread_state.id),
  -- The last one before that a thread woke, not an interrupt.
  prev_wakeup_runnable_id JOINID(thread_state.id)
) AS
SELECT id, prev_runnable_id, prev_wakeup_runnable_id
FROM (
  SELECT
    id,
    state,
    max(iif(state != 'Running', id, NULL)) OVER so_far AS prev_runnable_id,
    max(iif(waker_utid IS NOT NULL AND coalesce(irq_context, 0) != 1, id, NULL)) OVER so_far AS prev_wakeup_runnable_id
  FROM thread_state
  WHERE state GLOB 'R*' AND dur != -1
  WINDOW so_far AS (PARTITION BY utid ORDER BY id)
)
WHERE state = 'Running'
ORDER BY id;
