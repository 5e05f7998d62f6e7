-- What it costs to wake CPUs up, by the threads that they woke up for.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE wattson.estimates;
INCLUDE PERFETTO MODULE wattson.tasks.task_slices;
INCLUDE PERFETTO MODULE wattson.utils;

-- Spans of the idle thread in which a CPU is awake already or still, with the thread that they are there for: that before the first
-- thread, and that behind it if it was the only one: (ts, dur, cpu, utid, upid).
CREATE PERFETTO TABLE _idle_w_tasks AS
WITH
  ran AS (
    SELECT ii.ts, ii.dur, ii.cpu, s.utid, t.upid, t.is_idle, ii.id_1 AS idle_group
    FROM _interval_intersect!((_ii_subquery!(_task_wo_irq_infos), _ii_subquery!(_idle_exits)), (cpu)) AS ii
    JOIN _task_wo_irq_infos AS s ON s._auto_id = ii.id_0
    JOIN thread AS t ON t.utid = s.utid
  ),
  firsts AS (
    SELECT idle_group, utid, upid, min(ts) AS ts, ts + dur AS ts_end FROM ran WHERE NOT is_idle GROUP BY idle_group
  ),
  lasts AS (SELECT idle_group, max(ts) AS ts FROM ran GROUP BY idle_group)
SELECT r.ts, r.dur, r.cpu, f.utid, f.upid
FROM ran AS r
JOIN firsts AS f USING (idle_group)
JOIN lasts AS l USING (idle_group)
WHERE r.is_idle AND (r.ts < f.ts OR (r.ts = f.ts_end AND r.ts = l.ts))
ORDER BY r.ts;

-- What the CPUs draw then: (ts, dur, cpu, utid, upid, estimated_mw).
CREATE PERFETTO TABLE _idle_transition_cost AS
SELECT
  ii.ts,
  ii.dur,
  w.cpu,
  w.utid,
  w.upid,
  CASE w.cpu
    WHEN 0 THEN s.cpu0_mw
    WHEN 1 THEN s.cpu1_mw
    WHEN 2 THEN s.cpu2_mw
    WHEN 3 THEN s.cpu3_mw
    WHEN 4 THEN s.cpu4_mw
    WHEN 5 THEN s.cpu5_mw
    WHEN 6 THEN s.cpu6_mw
    WHEN 7 THEN s.cpu7_mw
  END AS estimated_mw
FROM _interval_intersect!(
  (
    (SELECT _auto_id AS id, ts, dur, cpu FROM _idle_w_tasks),
    (SELECT s._auto_id AS id, s.ts, s.dur, m.cpu FROM _system_state_mw AS s JOIN _dev_cpu_policy_map AS m)
  ),
  (cpu)
) AS ii
JOIN _idle_w_tasks AS w ON w._auto_id = ii.id_0
JOIN _system_state_mw AS s ON s._auto_id = ii.id_1;

-- The same over a window, in mWs: what threads have to answer for is taken off the idle thread of their CPU.
CREATE PERFETTO FUNCTION _filter_idle_attribution(
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION
)
RETURNS TABLE(
  -- Energy in mWs.
  idle_cost_mws DOUBLE,
  -- The thread.
  utid JOINID(thread.id),
  -- Its process.
  upid JOINID(process.id),
  -- The user id of its application.
  uid LONG,
  -- The CPU.
  cpu LONG
) AS
WITH
  costs AS (
    SELECT c.estimated_mw * w.dur / 1e9 AS mws, c.utid, c.upid, c.cpu
    FROM _interval_intersect_single!($ts, $dur, _ii_subquery!(_idle_transition_cost)) AS w
    JOIN _idle_transition_cost AS c ON c._auto_id = w.id
  )
SELECT c.mws AS idle_cost_mws, c.utid, c.upid, p.uid, c.cpu
FROM costs AS c
LEFT JOIN process AS p USING (upid)
UNION ALL
SELECT
  -sum(mws) AS idle_cost_mws,
  (SELECT min(utid) FROM thread WHERE is_idle AND machine_id = 0) AS utid,
  (SELECT min(upid) FROM thread WHERE is_idle AND machine_id = 0) AS upid,
  NULL AS uid,
  cpu
FROM costs
GROUP BY cpu;
