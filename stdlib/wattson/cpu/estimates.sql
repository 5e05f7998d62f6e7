-- What the host's CPUs draw, and the unit that they share.

INCLUDE PERFETTO MODULE wattson.cpu.pivot;
INCLUDE PERFETTO MODULE wattson.curves.utils;
INCLUDE PERFETTO MODULE wattson.device_infos;

-- Each CPU in each piece: (piece, cpu, policy, freq, idle, mw, static, dep_policy, dep_freq).
CREATE PERFETTO TABLE _wattson_cpu_mw AS
SELECT
  s.piece,
  s.cpu,
  s.policy,
  s.freq,
  s.idle,
  coalesce(s.curve_value, c.curve_value, 0.0) AS mw,
  coalesce(c.static, s.static, 0.0) AS static,
  d.dep_policy,
  d.dep_freq
FROM _wattson_cpu_pieces AS s
LEFT JOIN _wattson_cpu_dependencies AS d ON d.piece = s.piece AND d.cpu = s.cpu
LEFT JOIN _filtered_curves_2d AS c
  ON c.policy = s.policy
  AND c.freq_khz = s.freq
  AND c.dep_policy = d.dep_policy
  AND c.dep_freq = d.dep_freq
  AND c.idle = s.idle;

-- What the shared unit draws in each piece: what clusters draw as long as one of their CPUs is not in the deepest state, and what
-- accesses to the cache and to memory cost as long as any CPU is not: (piece, mw).
CREATE PERFETTO TABLE _wattson_shared_mw AS
WITH
  clusters AS (
    SELECT piece, policy, max(static) AS mw
    FROM _wattson_cpu_mw
    WHERE coalesce(idle, 1) < (SELECT idle FROM _deepest_idle)
    GROUP BY piece, policy
  ),
  statics AS (SELECT piece, sum(mw) AS mw FROM clusters GROUP BY piece),
  accesses AS (
    SELECT p.id AS piece, max(coalesce(p.l3_hit_count, 0) * l.l3_hit + coalesce(p.l3_miss_count, 0) * l.l3_miss) * 1000 / p.dur AS mw
    FROM _wattson_pieces AS p
    JOIN _wattson_cpu_mw AS c ON c.piece = p.id
    JOIN _filtered_curves_l3 AS l ON l.freq_khz = c.freq AND l.dep_policy = c.dep_policy AND l.dep_freq = c.dep_freq
    GROUP BY p.id
  )
SELECT s.piece, s.mw + coalesce(a.mw, 0.0) AS mw
FROM statics AS s
LEFT JOIN accesses AS a USING (piece);

-- What one CPU draws in a piece; NULL for one that is not there.
CREATE PERFETTO MACRO _wattson_cpu_column(
  -- Number of the CPU.
  n Expr
)
RETURNS Expr AS max(iif(c.cpu = $n, c.mw, NULL));

-- All in one row for each piece, in mW; none without a model.
CREATE PERFETTO TABLE _cpu_estimates_mw AS
SELECT
  p.ts,
  p.dur,
  _wattson_cpu_column!(0) AS cpu0_mw,
  _wattson_cpu_column!(1) AS cpu1_mw,
  _wattson_cpu_column!(2) AS cpu2_mw,
  _wattson_cpu_column!(3) AS cpu3_mw,
  _wattson_cpu_column!(4) AS cpu4_mw,
  _wattson_cpu_column!(5) AS cpu5_mw,
  _wattson_cpu_column!(6) AS cpu6_mw,
  _wattson_cpu_column!(7) AS cpu7_mw,
  coalesce(max(s.mw), 0.0) AS dsu_scu_mw
FROM _wattson_pieces AS p
JOIN _wattson_cpu_mw AS c ON c.piece = p.id
LEFT JOIN _wattson_shared_mw AS s ON s.piece = p.id
WHERE EXISTS (SELECT 1 FROM _wattson_device)
GROUP BY p.id
ORDER BY p.ts;

-- What each configuration of the CPUs draws: (config_hash, cpu0_mw .. cpu7_mw, dsu_scu_mw). Accesses to the cache count with their
-- mean.
CREATE PERFETTO VIEW _unique_estimates_mw AS
SELECT
  hash(
    s.freq_0, s.idle_0, s.freq_1, s.idle_1,
    s.freq_2, s.idle_2, s.freq_3, s.idle_3,
    s.freq_4, s.idle_4, s.freq_5, s.idle_5,
    s.freq_6, s.idle_6, s.freq_7, s.idle_7,
    coalesce(s.dsu_freq, 0)
  ) AS config_hash,
  avg(e.cpu0_mw) AS cpu0_mw,
  avg(e.cpu1_mw) AS cpu1_mw,
  avg(e.cpu2_mw) AS cpu2_mw,
  avg(e.cpu3_mw) AS cpu3_mw,
  avg(e.cpu4_mw) AS cpu4_mw,
  avg(e.cpu5_mw) AS cpu5_mw,
  avg(e.cpu6_mw) AS cpu6_mw,
  avg(e.cpu7_mw) AS cpu7_mw,
  avg(e.dsu_scu_mw) AS dsu_scu_mw
FROM _w_independent_cpus_calc AS s
JOIN _cpu_estimates_mw AS e USING (ts)
GROUP BY 1;
