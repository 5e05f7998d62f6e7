-- What ran on the host's CPUs: threads, and the interrupts that took the CPU from them.

INCLUDE PERFETTO MODULE android.process_metadata;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.pieces;
INCLUDE PERFETTO MODULE wattson.cpu.idle;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.utils;

-- Spans in which a CPU is awake: (ts, dur, cpu, group_id).
CREATE PERFETTO TABLE _idle_exits AS
SELECT ts, dur, cpu, _auto_id AS group_id FROM _adjusted_deep_idle WHERE idle = -1;

-- Threads by CPU, where their end is known: (ts, dur, cpu, utid).
CREATE PERFETTO TABLE _task_wo_irq_infos AS
SELECT s.ts, s.dur, s.ucpu AS cpu, s.utid
FROM sched AS s
JOIN _dev_cpu_policy_map AS m ON m.cpu = s.ucpu
WHERE s.dur > 0
ORDER BY s.ts;

-- Handlers of interrupts, the innermost of each moment: (ts, dur, cpu, name).
CREATE PERFETTO MACRO _irqs_by_cpu(
  -- Type of the tracks.
  kind Expr
)
RETURNS TableOrSubquery AS
(
  SELECT p.ts, p.dur, extract_arg(t.dimension_arg_set_id, 'cpu') AS cpu, s.name
  FROM _slice_pieces!((
    SELECT s.id, s.ts, s.dur, s.track_id, s.depth, s.parent_id
    FROM track AS t
    JOIN slice AS s ON s.track_id = t.id
    WHERE t.type = $kind AND t.machine_id = 0
  )) AS p
  JOIN slice AS s ON s.id = p.slice_id
  JOIN track AS t ON t.id = p.track_id
);

CREATE PERFETTO TABLE _hard_irq_flattened_slices AS
SELECT ts, dur, cpu, name AS hard_irq_name FROM _irqs_by_cpu!('cpu_irq') ORDER BY ts;

CREATE PERFETTO TABLE _soft_irq_slices AS
SELECT ts, dur, cpu, name AS soft_irq_name FROM _irqs_by_cpu!('cpu_softirq') ORDER BY ts;

CREATE VIRTUAL TABLE _all_irqs_combined_slices USING span_outer_join(
  _soft_irq_slices PARTITIONED cpu, _hard_irq_flattened_slices PARTITIONED cpu);

-- Hardware interrupts come before soft ones. irq_id stands where threads have their utid: (ts, dur, cpu, irq_name, irq_id).
CREATE PERFETTO TABLE _all_irqs_flattened_slices AS
SELECT
  ts, dur, cpu, coalesce(hard_irq_name, soft_irq_name) AS irq_name, hash(coalesce(hard_irq_name, soft_irq_name, '')) AS irq_id
FROM _all_irqs_combined_slices;

-- Who is who: (utid, upid, tid, pid, uid, thread_name, process_name, package_name).
CREATE PERFETTO TABLE _wattson_task_metadata AS
SELECT
  t.utid, t.upid, t.tid, p.pid, p.uid, iif(t.is_idle, 'swapper', t.name) AS thread_name, p.process_name, p.package_name
FROM thread AS t
LEFT JOIN android_process_metadata AS p USING (upid)
UNION ALL
SELECT DISTINCT irq_id, irq_id, irq_id, irq_id, irq_id, irq_name, irq_name, irq_name FROM _all_irqs_flattened_slices;

CREATE VIRTUAL TABLE _irq_w_tasks_info USING span_outer_join(
  _task_wo_irq_infos PARTITIONED cpu, _all_irqs_flattened_slices PARTITIONED cpu);

-- Interrupts come before threads: (ts, dur, cpu, utid, is_irq).
CREATE PERFETTO TABLE _all_tasks_flattened_slices AS
SELECT ts, dur, cpu, coalesce(irq_id, utid) AS utid, irq_id IS NOT NULL AS is_irq
FROM _irq_w_tasks_info;

-- The same while CPUs are awake: (ts, dur, cpu, utid, is_irq, is_idle, idle_group).
CREATE PERFETTO TABLE _active_state_w_tasks AS
SELECT ii.ts, ii.dur, ii.cpu, a.utid, a.is_irq, coalesce(t.is_idle, 0) AS is_idle, ii.id_1 AS idle_group
FROM _interval_intersect!((_ii_subquery!(_all_tasks_flattened_slices), _ii_subquery!(_idle_exits)), (cpu)) AS ii
JOIN _all_tasks_flattened_slices AS a ON a._auto_id = ii.id_0
LEFT JOIN thread AS t ON t.utid = a.utid AND NOT a.is_irq;

-- What ran from the first thread of each waking on, or from its start when there was none: what woke the CPU up before that works
-- for the thread. The first row of each waking is what caused it: (ts, dur, cpu, utid, idle_group).
CREATE PERFETTO TABLE _task_causing_idle_exit AS
SELECT a.ts, a.dur, a.cpu, a.utid, a.idle_group
FROM _active_state_w_tasks AS a
JOIN (
  SELECT idle_group, coalesce(min(iif(is_irq OR is_idle, NULL, ts)), min(ts)) AS ts
  FROM _active_state_w_tasks
  GROUP BY idle_group
) AS s USING (idle_group)
WHERE a.ts >= s.ts;

-- The same without gaps: the time between belongs to the idle thread, with who they are: (ts, dur, cpu, utid, upid, tid, pid, uid,
-- thread_name, process_name, package_name).
CREATE PERFETTO TABLE _wattson_task_slices AS
WITH
  wakings AS (
    SELECT cpu, min(ts) AS ts, max(ts + dur) AS ts_end FROM _task_causing_idle_exit GROUP BY cpu, idle_group
  ),
  swapper AS (
    SELECT min(utid) AS utid FROM thread WHERE is_idle AND machine_id = 0 HAVING utid IS NOT NULL
  ),
  sleeps AS (
    SELECT ts_end AS ts, lead(ts) OVER (PARTITION BY cpu ORDER BY ts) - ts_end AS dur, cpu FROM wakings
  ),
  spans AS (
    SELECT ts, dur, cpu, utid FROM _task_causing_idle_exit
    UNION ALL
    SELECT s.ts, s.dur, s.cpu, i.utid FROM sleeps AS s JOIN swapper AS i WHERE s.dur > 0
  )
SELECT s.ts, s.dur, s.cpu, s.utid, m.upid, m.tid, m.pid, m.uid, m.thread_name, m.process_name, m.package_name
FROM spans AS s
LEFT JOIN _wattson_task_metadata AS m USING (utid)
ORDER BY s.ts;
