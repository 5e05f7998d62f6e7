-- Power curves of the device that the trace is from, one row for each state.

INCLUDE PERFETTO MODULE wattson.curves.cpu_1d;
INCLUDE PERFETTO MODULE wattson.curves.cpu_2d;
INCLUDE PERFETTO MODULE wattson.curves.gpu;
INCLUDE PERFETTO MODULE wattson.curves.l3;
INCLUDE PERFETTO MODULE wattson.curves.tpu;
INCLUDE PERFETTO MODULE wattson.device_infos;

-- The curves of the host's CPUs that depend on nothing else, one row a frequency …
CREATE PERFETTO TABLE _filtered_curves_1d_raw AS
SELECT c.policy, c.freq_khz, c.static, c.active, c.idle0, c.idle1
FROM _device_curves_1d AS c
JOIN _wattson_device AS d ON d.name = c.device;

-- … and one a state: (policy, freq_khz, idle, curve_value, static); idle is -1 while they work.
CREATE PERFETTO TABLE _filtered_curves_1d AS
SELECT policy, freq_khz, -1 AS idle, active AS curve_value, static FROM _filtered_curves_1d_raw
UNION ALL
SELECT policy, freq_khz, 0, idle0, static FROM _filtered_curves_1d_raw
UNION ALL
SELECT policy, freq_khz, 1, idle1, static FROM _filtered_curves_1d_raw;

CREATE PERFETTO INDEX _filtered_curves_1d_by_freq ON _filtered_curves_1d(policy, freq_khz, idle);

-- The curves of those that do, one row a pair of frequencies …
CREATE PERFETTO TABLE _filtered_curves_2d_raw AS
SELECT c.policy, c.freq_khz, c.dep_policy, c.dep_freq, c.static, c.active, c.idle0, c.idle1
FROM _device_curves_2d AS c
JOIN _wattson_device AS d ON d.name = c.device;

-- … and one a state: (policy, freq_khz, dep_policy, dep_freq, idle, curve_value, static).
CREATE PERFETTO TABLE _filtered_curves_2d AS
SELECT policy, freq_khz, dep_policy, dep_freq, -1 AS idle, active AS curve_value, static FROM _filtered_curves_2d_raw
UNION ALL
SELECT policy, freq_khz, dep_policy, dep_freq, 0, idle0, static FROM _filtered_curves_2d_raw
UNION ALL
SELECT policy, freq_khz, dep_policy, dep_freq, 1, idle1, static FROM _filtered_curves_2d_raw;

CREATE PERFETTO INDEX _filtered_curves_2d_by_freq ON _filtered_curves_2d(policy, freq_khz, dep_policy, dep_freq, idle);

-- What policies depend on, with what counts when nothing there works: (policy, dep_policy, dep_freq).
CREATE PERFETTO TABLE _policy_dependencies AS
SELECT policy, dep_policy, min(dep_freq) AS dep_freq
FROM _filtered_curves_2d
GROUP BY policy, dep_policy;

-- The policy that stands for the unit that CPUs share, with its cache.
CREATE PERFETTO FUNCTION _dsu_policy()
RETURNS LONG AS
SELECT 255;

-- What each CPU depends on: (cpu, dep_policy); CPUs with curves of one frequency have no row.
CREATE PERFETTO TABLE _cpu_lut_dependencies AS
SELECT DISTINCT m.cpu, c.dep_policy
FROM _dev_cpu_policy_map AS m
JOIN _filtered_curves_2d_raw AS c USING (policy)
ORDER BY m.cpu, c.dep_policy;

-- CPUs that depend on that unit, whatever else they depend on: (cpu).
CREATE PERFETTO TABLE _cpu_w_dsu_dependency AS
SELECT cpu
FROM _cpu_lut_dependencies
GROUP BY cpu
HAVING max(dep_policy = _dsu_policy());

-- What counts for each when nothing that it depends on works: the lowest: (cpu, dep_policy, dep_freq).
CREATE PERFETTO TABLE _cpu_w_dependency_default_vote AS
SELECT l.cpu, l.dep_policy, d.dep_freq
FROM _cpu_lut_dependencies AS l
JOIN _dev_cpu_policy_map AS m USING (cpu)
JOIN _policy_dependencies AS d ON d.policy = m.policy AND d.dep_policy = l.dep_policy
WHERE true
GROUP BY l.cpu
HAVING d.dep_freq = min(d.dep_freq);

-- CPUs whose curves have a part that their whole cluster draws: (cpu).
CREATE PERFETTO TABLE _cpus_for_static AS
SELECT m.cpu
FROM _dev_cpu_policy_map AS m
WHERE
  m.policy IN (SELECT policy FROM _filtered_curves_1d_raw WHERE static > 0)
  OR m.policy IN (SELECT policy FROM _filtered_curves_2d_raw WHERE static > 0);

-- Caches and memory: (freq_khz, dep_policy, dep_freq, l3_hit, l3_miss).
CREATE PERFETTO TABLE _filtered_curves_l3 AS
SELECT c.freq_khz, c.dep_policy, c.dep_freq, c.l3_hit, c.l3_miss
FROM _device_curves_l3 AS c
JOIN _wattson_device AS d ON d.name = c.device;

-- What connects them, by another name.
CREATE PERFETTO VIEW _filtered_curves_interconnect AS
SELECT freq_khz, dep_policy, dep_freq, l3_hit, l3_miss FROM _filtered_curves_l3;

-- GPUs, one row a frequency …
CREATE PERFETTO TABLE _gpu_filtered_curves_raw AS
SELECT c.freq_khz, c.active, c.idle1, c.idle2
FROM _gpu_device_curves AS c
JOIN _wattson_device AS d ON d.name = c.device;

-- … and one a state: (freq_khz, idle, curve_value); idle is the power state, 2 while they work.
CREATE PERFETTO TABLE _gpu_filtered_curves AS
SELECT freq_khz, 2 AS idle, active AS curve_value FROM _gpu_filtered_curves_raw
UNION ALL
SELECT freq_khz, 1, idle1 FROM _gpu_filtered_curves_raw
UNION ALL
SELECT freq_khz, 0, idle2 FROM _gpu_filtered_curves_raw;

-- TPUs: (cluster, requests, freq, active).
CREATE PERFETTO TABLE _tpu_filtered_curves AS
SELECT c.cluster, c.requests, c.freq, c.active
FROM _tpu_device_curves AS c
JOIN _wattson_device AS d ON d.name = c.device;
