-- For whom the GPU of the host works.

INCLUDE PERFETTO MODULE android.gpu.work_period;
INCLUDE PERFETTO MODULE intervals.overlap;

-- Periods of work: (ts, dur, uid, gpu_id).
CREATE PERFETTO TABLE _gpu_tasks AS
SELECT s.ts, s.dur, t.uid, t.gpu_id
FROM slice AS s
JOIN android_gpu_work_period_track AS t ON t.id = s.track_id
WHERE s.dur > 0 AND t.machine_id = 0
ORDER BY s.ts;

-- How many it works for at once, over the whole trace: (ts, dur, active_tasks).
CREATE PERFETTO TABLE _gpu_active_task_count AS
SELECT ts, dur, active_tasks
FROM (
  SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur, active_tasks
  FROM (
    SELECT ts, value AS active_tasks FROM intervals_overlap_count!(_gpu_tasks, ts, dur)
    UNION ALL
    SELECT trace_start(), 0 WHERE NOT EXISTS (SELECT 1 FROM _gpu_tasks WHERE ts = trace_start())
  )
)
WHERE dur > 0;
