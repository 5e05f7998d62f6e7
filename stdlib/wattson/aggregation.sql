-- Power added up over windows of time, by threads and by parts of the host.
--
-- A window is a row with ts, dur and period_id; wattson.windows has some.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE wattson.cpu.idle;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.estimates;
INCLUDE PERFETTO MODULE wattson.tasks.attribution;
INCLUDE PERFETTO MODULE wattson.tasks.idle_transitions_attribution;
INCLUDE PERFETTO MODULE wattson.utils;

-- Energy of threads from spans that are in the windows already: (period_id, period_dur, utid, tid, pid, upid, uid, thread_name,
-- process_name, package_name, estimated_mws, estimated_mw, idle_transitions_mws, total_mws).
CREATE PERFETTO MACRO _wattson_threads_aggregation(
  -- The spans, as _estimates_w_tasks_attribution, with period_id.
  tasks_table TableOrSubquery,
  -- The windows.
  window_table TableOrSubquery,
  -- CPUs that count: cpu.
  cpus_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _agg_active AS (
      SELECT
        period_id, utid, thread_name, process_name, package_name, tid, pid, upid, uid, sum(estimated_mw * dur) AS mw_ns
      FROM $tasks_table
      GROUP BY period_id, utid
    ),
    _agg_idle AS (
      SELECT w.period_id, c.utid, sum(c.idle_cost_mws) AS mws
      FROM $window_table AS w
      JOIN _filter_idle_attribution(w.ts, w.dur) AS c
      WHERE c.cpu IN (SELECT cpu FROM $cpus_table)
      GROUP BY w.period_id, c.utid
    )
  SELECT
    a.period_id,
    w.dur AS period_dur,
    a.utid,
    a.tid,
    a.pid,
    a.upid,
    a.uid,
    coalesce(a.thread_name, 'Thread ' || a.tid) AS thread_name,
    coalesce(a.process_name, '') AS process_name,
    coalesce(a.package_name, '') AS package_name,
    a.mw_ns / 1e9 AS estimated_mws,
    a.mw_ns / w.dur AS estimated_mw,
    coalesce(i.mws, 0) AS idle_transitions_mws,
    a.mw_ns / 1e9 + coalesce(i.mws, 0) AS total_mws
  FROM _agg_active AS a
  JOIN $window_table AS w USING (period_id)
  LEFT JOIN _agg_idle AS i ON i.period_id = a.period_id AND i.utid = a.utid
);

-- Energy of threads in windows: period_id, period_dur, utid, tid, pid, thread_name, process_name, package_name, estimated_mws
-- (while they ran), estimated_mw (that as a mean over the window), idle_transitions_mws (waking CPUs up) and total_mws.
CREATE PERFETTO MACRO wattson_threads_aggregation(
  -- The windows: ts, dur, period_id.
  window_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _windowed_tasks AS (
      SELECT ii.dur, ii.id_1 AS period_id, t.*
      FROM _interval_intersect!(
        (
          _ii_subquery!(_estimates_w_tasks_attribution),
          (SELECT period_id AS id, ts, dur FROM $window_table)
        ),
        ()
      ) AS ii
      JOIN (
        SELECT
          _auto_id AS row_id, estimated_mw, utid, upid, tid, pid, uid, thread_name, process_name, package_name
        FROM _estimates_w_tasks_attribution
      ) AS t ON t.row_id = ii.id_0
    )
  SELECT
    period_id, period_dur, utid, tid, pid, thread_name, process_name, package_name, estimated_mws, estimated_mw,
    idle_transitions_mws, total_mws
  FROM _wattson_threads_aggregation!(_windowed_tasks, $window_table, _wattson_cpus)
);

-- Parts of the host in windows: period_id, period_dur, subsystem ('CPU', 'GPU', 'TPU'), breakdown_type ('CORE', 'POLICY', 'DSU',
-- 'TOTAL'), component_id, parent_id (the policy of a core), estimated_mw, estimated_mws. The total of CPUs comes last and
-- has their cores once.
CREATE PERFETTO MACRO wattson_rails_aggregation(
  -- The windows: ts, dur, period_id.
  window_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _rails AS MATERIALIZED (SELECT * FROM _wattson_base_components_avg_mw!($window_table)),
    _rail_cores AS (
      SELECT period_id, period_dur, 0 AS cpu, cpu0_poli AS policy, cpu0_mw AS mw FROM _rails WHERE cpu0_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 1, cpu1_poli, cpu1_mw FROM _rails WHERE cpu1_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 2, cpu2_poli, cpu2_mw FROM _rails WHERE cpu2_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 3, cpu3_poli, cpu3_mw FROM _rails WHERE cpu3_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 4, cpu4_poli, cpu4_mw FROM _rails WHERE cpu4_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 5, cpu5_poli, cpu5_mw FROM _rails WHERE cpu5_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 6, cpu6_poli, cpu6_mw FROM _rails WHERE cpu6_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 7, cpu7_poli, cpu7_mw FROM _rails WHERE cpu7_mw IS NOT NULL
    ),
    _rail_parts AS (
      SELECT
        period_id, period_dur, 'CPU' AS subsystem, 'CORE' AS breakdown_type, cpu AS component_id, policy AS parent_id,
        mw AS estimated_mw
      FROM _rail_cores
      UNION ALL
      SELECT period_id, period_dur, 'CPU', 'POLICY', policy, NULL, sum(mw) FROM _rail_cores GROUP BY period_id, policy
      UNION ALL
      SELECT period_id, period_dur, 'CPU', 'DSU', NULL, NULL, dsu_scu_mw FROM _rails WHERE dsu_scu_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 'GPU', 'TOTAL', NULL, NULL, gpu_mw FROM _rails WHERE gpu_mw IS NOT NULL
      UNION ALL
      SELECT period_id, period_dur, 'TPU', 'TOTAL', NULL, NULL, tpu_mw FROM _rails WHERE tpu_mw IS NOT NULL
    )
  SELECT *, estimated_mw * period_dur / 1e9 AS estimated_mws FROM _rail_parts
  UNION ALL
  SELECT period_id, period_dur, 'CPU', 'TOTAL', NULL, NULL, sum(estimated_mw), sum(estimated_mw) * period_dur / 1e9
  FROM _rail_parts
  WHERE breakdown_type IN ('POLICY', 'DSU')
  GROUP BY period_id
);

-- What the estimates are worth.
CREATE PERFETTO VIEW wattson_metric_metadata(
  -- Version of the results.
  metric_version LONG,
  -- Version of the power model.
  power_model_version LONG,
  -- Whether idle states had to be guessed from what ran.
  is_crude_estimate BOOL
) AS
SELECT
  4 AS metric_version,
  1 AS power_model_version,
  NOT EXISTS (SELECT 1 FROM _wattson_cpuidle_counters_exist) AS is_crude_estimate;
