-- Frequency and idle state of the host's CPUs together.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE wattson.cpu.freq;
INCLUDE PERFETTO MODULE wattson.cpu.hotplug;
INCLUDE PERFETTO MODULE wattson.cpu.idle;
INCLUDE PERFETTO MODULE wattson.curves.utils;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.utils;

-- What can be estimated begins when the frequency of the first CPU is known: (ts, dur, cpu).
CREATE PERFETTO TABLE _valid_window AS
SELECT w.ts, trace_end() - w.ts AS dur, m.cpu
FROM (SELECT min(ts) AS ts FROM _adjusted_cpu_freq WHERE cpu = 0 AND freq IS NOT NULL) AS w
JOIN _dev_cpu_policy_map AS m
WHERE w.ts IS NOT NULL;

-- (ts, dur, cpu, policy, freq, idle, curve_value, static). A CPU that is out or asleep is in the deepest state and draws nothing;
-- one that depends on something else has no value yet.
CREATE PERFETTO TABLE _idle_freq_materialized AS
SELECT
  ii.ts,
  ii.dur,
  ii.cpu,
  f.policy,
  f.freq,
  iif(s.suspended OR h.offline, (SELECT idle FROM _deepest_idle), i.idle) AS idle,
  iif(s.suspended OR h.offline, 0.0, c.curve_value) AS curve_value,
  c.static
FROM _interval_intersect!(
  (
    _ii_subquery!(_valid_window),
    _ii_subquery!(_adjusted_cpu_freq),
    _ii_subquery!(_adjusted_deep_idle),
    _ii_subquery!(_gapless_hotplug_slices),
    _ii_subquery!(_gapless_suspend_slices)
  ),
  (cpu)
) AS ii
JOIN _adjusted_cpu_freq AS f ON f._auto_id = ii.id_1
JOIN _adjusted_deep_idle AS i ON i._auto_id = ii.id_2
JOIN _gapless_hotplug_slices AS h ON h._auto_id = ii.id_3
JOIN _gapless_suspend_slices AS s ON s._auto_id = ii.id_4
LEFT JOIN _filtered_curves_1d AS c ON c.policy = f.policy AND c.freq_khz = f.freq AND c.idle = i.idle
ORDER BY ii.ts;
