-- When CPUs of the host were taken out, and when the host slept.

INCLUDE PERFETTO MODULE android.suspend;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.utils;

-- Changes of a CPU between in and out: (ts, dur, cpu, is_different_cpu). While another CPU does the steps of taking it in or out it
-- is out; what lasts less than 100 us is a step that was handed over.
CREATE PERFETTO TABLE _cpu_hotplug_offline AS
WITH
  steps AS (
    SELECT
      s.ts,
      extract_arg(t.dimension_arg_set_id, 'cpu') AS cpu,
      extract_arg(t.dimension_arg_set_id, 'cpu') != extract_arg(s.arg_set_id, 'action_cpu') AS other
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.type = 'cpu_hotplug' AND t.machine_id = 0
  ),
  changes AS (
    SELECT ts, cpu, other FROM (SELECT *, lag(other) OVER (PARTITION BY cpu ORDER BY ts) AS before FROM steps) WHERE other != before
  )
SELECT ts, dur, cpu, other AND dur >= 100000 AS is_different_cpu
FROM (SELECT *, lead(ts, 1, trace_end()) OVER (PARTITION BY cpu ORDER BY ts) - ts AS dur FROM changes);

-- The same over the whole trace: (ts, dur, cpu, offline).
CREATE PERFETTO TABLE _gapless_hotplug_slices AS
SELECT ts, dur, cpu, coalesce(value, 0) AS offline
FROM _gapless_by_cpu!((SELECT ts, dur, cpu, is_different_cpu AS value FROM _cpu_hotplug_offline))
ORDER BY cpu, ts;

-- When the host slept, for each CPU: (ts, dur, cpu, suspended).
CREATE PERFETTO TABLE _gapless_suspend_slices AS
SELECT s.ts, s.dur, m.cpu, s.power_state = 'suspended' AS suspended
FROM android_suspend_state AS s
JOIN _dev_cpu_policy_map AS m
WHERE s.machine_id = 0
ORDER BY s.ts;
