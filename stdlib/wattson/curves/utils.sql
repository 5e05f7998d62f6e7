-- Power curves of the device that the trace is from, one row for each state.

INCLUDE PERFETTO MODULE wattson.curves.cpu_1d;
INCLUDE PERFETTO MODULE wattson.curves.cpu_2d;
INCLUDE PERFETTO MODULE wattson.curves.gpu;
INCLUDE PERFETTO MODULE wattson.curves.l3;
INCLUDE PERFETTO MODULE wattson.curves.tpu;
INCLUDE PERFETTO MODULE wattson.device_infos;

-- CPUs that depend on nothing else: (policy, freq_khz, idle, curve_value, static); idle is -1 while they work.
CREATE PERFETTO TABLE _filtered_curves_1d AS
WITH curves AS (SELECT c.* FROM _device_curves_1d AS c JOIN _wattson_device AS d ON d.name = c.device)
SELECT policy, freq_khz, -1 AS idle, active AS curve_value, static FROM curves
UNION ALL
SELECT policy, freq_khz, 0, idle0, static FROM curves
UNION ALL
SELECT policy, freq_khz, 1, idle1, static FROM curves;

CREATE PERFETTO INDEX _filtered_curves_1d_by_freq ON _filtered_curves_1d(policy, freq_khz, idle);

-- CPUs that do: (policy, freq_khz, dep_policy, dep_freq, idle, curve_value, static).
CREATE PERFETTO TABLE _filtered_curves_2d AS
WITH curves AS (SELECT c.* FROM _device_curves_2d AS c JOIN _wattson_device AS d ON d.name = c.device)
SELECT policy, freq_khz, dep_policy, dep_freq, -1 AS idle, active AS curve_value, static FROM curves
UNION ALL
SELECT policy, freq_khz, dep_policy, dep_freq, 0, idle0, static FROM curves
UNION ALL
SELECT policy, freq_khz, dep_policy, dep_freq, 1, idle1, static FROM curves;

CREATE PERFETTO INDEX _filtered_curves_2d_by_freq ON _filtered_curves_2d(policy, freq_khz, dep_policy, dep_freq, idle);

-- What policies depend on, with what counts when nothing there works: (policy, dep_policy, dep_freq).
CREATE PERFETTO TABLE _policy_dependencies AS
SELECT policy, dep_policy, min(dep_freq) AS dep_freq
FROM _filtered_curves_2d
GROUP BY policy, dep_policy;

-- CPUs that depend on the cache that they share, whose policy is 255.
CREATE PERFETTO TABLE _cpu_w_dsu_dependency AS
SELECT DISTINCT m.cpu
FROM _dev_cpu_policy_map AS m
JOIN _policy_dependencies AS d USING (policy)
WHERE d.dep_policy = 255;

-- Caches and memory: (freq_khz, dep_policy, dep_freq, l3_hit, l3_miss).
CREATE PERFETTO TABLE _filtered_curves_l3 AS
SELECT c.freq_khz, c.dep_policy, c.dep_freq, c.l3_hit, c.l3_miss
FROM _device_curves_l3 AS c
JOIN _wattson_device AS d ON d.name = c.device;

-- GPUs: (freq_khz, idle, curve_value); idle is the power state, 2 while they work.
CREATE PERFETTO TABLE _gpu_filtered_curves AS
WITH curves AS (SELECT c.* FROM _gpu_device_curves AS c JOIN _wattson_device AS d ON d.name = c.device)
SELECT freq_khz, 2 AS idle, active AS curve_value FROM curves
UNION ALL
SELECT freq_khz, 1, idle1 FROM curves
UNION ALL
SELECT freq_khz, 0, idle2 FROM curves;

-- TPUs: (cluster, requests, freq, active).
CREATE PERFETTO TABLE _tpu_filtered_curves AS
SELECT c.cluster, c.requests, c.freq, c.active
FROM _tpu_device_curves AS c
JOIN _wattson_device AS d ON d.name = c.device;
