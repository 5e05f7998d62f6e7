-- Who draws what: power by threads and by users of the GPU.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.estimates;
INCLUDE PERFETTO MODULE wattson.gpu.estimates;
INCLUDE PERFETTO MODULE wattson.tasks.gpu_active_regions;
INCLUDE PERFETTO MODULE wattson.tasks.gpu_tasks;
INCLUDE PERFETTO MODULE wattson.tasks.task_slices;
INCLUDE PERFETTO MODULE wattson.ui.continuous_estimates;
INCLUDE PERFETTO MODULE wattson.utils;

-- What each CPU draws, and as CPU -1 what they share: (ts, dur, cpu, estimated_mw).
CREATE PERFETTO TABLE _unioned_wattson_estimates_mw AS
SELECT ts, dur, cpu, cpu0_mw AS estimated_mw FROM _system_state_cpu0_mw
UNION ALL
SELECT ts, dur, cpu, cpu1_mw AS estimated_mw FROM _system_state_cpu1_mw
UNION ALL
SELECT ts, dur, cpu, cpu2_mw AS estimated_mw FROM _system_state_cpu2_mw
UNION ALL
SELECT ts, dur, cpu, cpu3_mw AS estimated_mw FROM _system_state_cpu3_mw
UNION ALL
SELECT ts, dur, cpu, cpu4_mw AS estimated_mw FROM _system_state_cpu4_mw
UNION ALL
SELECT ts, dur, cpu, cpu5_mw AS estimated_mw FROM _system_state_cpu5_mw
UNION ALL
SELECT ts, dur, cpu, cpu6_mw AS estimated_mw FROM _system_state_cpu6_mw
UNION ALL
SELECT ts, dur, cpu, cpu7_mw AS estimated_mw FROM _system_state_cpu7_mw
UNION ALL
SELECT ts, dur, -1 AS cpu, dsu_scu_mw AS estimated_mw FROM _system_state_dsu_scu_mw;

-- The same by what ran: (ts, dur, cpu, estimated_mw, utid, upid, tid, pid, uid, thread_name, process_name, package_name).
CREATE PERFETTO TABLE _estimates_w_tasks_attribution AS
SELECT
  ii.ts, ii.dur, ii.cpu, e.estimated_mw, t.utid, t.upid, t.tid, t.pid, t.uid, t.thread_name, t.process_name, t.package_name
FROM _interval_intersect!(
  (_ii_subquery!(_unioned_wattson_estimates_mw), _ii_subquery!(_wattson_task_slices)),
  (cpu)
) AS ii
JOIN _unioned_wattson_estimates_mw AS e ON e._auto_id = ii.id_0
JOIN _wattson_task_slices AS t ON t._auto_id = ii.id_1;

-- What the GPU draws, in equal parts by those it works for: (ts, dur, uid, gpu_id, estimated_mw).
CREATE PERFETTO TABLE _gpu_tasks_attribution AS
SELECT ii.ts, ii.dur, t.uid, t.gpu_id, g.gpu_mw / n.active_tasks AS estimated_mw
FROM _interval_intersect!(
  (_ii_subquery!(_gpu_tasks), _ii_subquery!(_gpu_active_task_count), _ii_subquery!(_gpu_estimates_mw)),
  ()
) AS ii
JOIN _gpu_tasks AS t ON t._auto_id = ii.id_0
JOIN _gpu_active_task_count AS n ON n._auto_id = ii.id_1
JOIN _gpu_estimates_mw AS g ON g._auto_id = ii.id_2
WHERE n.active_tasks > 0;

-- The same with the time that it is on for nobody; that before its first work counts for the one it then works for: (ts, dur, cpu,
-- uid, estimated_mw, idle_mw, package_name). The GPU stands there as CPU -2.
CREATE PERFETTO TABLE _gpu_estimates_w_tasks_attribution AS
WITH
  packages AS (SELECT uid, min(package_name) AS package_name FROM package_list GROUP BY uid),
  parts AS (
    SELECT ts, dur, uid, estimated_mw, 0.0 AS idle_mw FROM _gpu_tasks_attribution
    UNION ALL
    SELECT ts, dur, uid, 0.0, estimated_mw FROM _gpu_gap_attribution
  )
SELECT
  g.ts, g.dur, -2 AS cpu, g.uid, g.estimated_mw, g.idle_mw, iif(g.uid = -1, 'GPU Idle', p.package_name) AS package_name
FROM parts AS g
LEFT JOIN packages AS p USING (uid);

-- CPUs that have estimates.
CREATE PERFETTO TABLE _wattson_cpus AS
SELECT cpu FROM _dev_cpu_policy_map WHERE EXISTS (SELECT 1 FROM _system_state_mw);
