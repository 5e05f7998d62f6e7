-- All of the host's CPUs beside each other: the time cut wherever one of them changes.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE wattson.cpu.arm_dsu;
INCLUDE PERFETTO MODULE wattson.cpu.freq_idle;
INCLUDE PERFETTO MODULE wattson.curves.utils;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.utils;

-- Moments at which anything changes.
CREATE PERFETTO TABLE _wattson_cuts AS
SELECT ts FROM _idle_freq_materialized
UNION
SELECT ts + dur FROM _idle_freq_materialized
UNION
SELECT ts FROM _wattson_dsu_frequency
UNION
SELECT ts FROM _arm_l3_rates;

-- The pieces between them with what all CPUs share: (id, ts, dur, dsu_freq, l3_hit_count, l3_miss_count). Those of up to 1 us are
-- left out: they are many, and cost nothing.
CREATE PERFETTO TABLE _wattson_pieces AS
WITH
  pieces AS (SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur FROM _wattson_cuts),
  numbered AS (
    SELECT row_number() OVER (ORDER BY p.ts) AS id, p.ts, p.dur
    FROM pieces AS p
    WHERE p.dur > 1000 AND p.ts >= (SELECT min(ts) FROM _valid_window)
  ),
  dsu AS (
    SELECT ii.id_0 AS id, f.dsu_freq
    FROM _interval_intersect!((numbered, _ii_subquery!(_wattson_dsu_frequency)), ()) AS ii
    JOIN _wattson_dsu_frequency AS f ON f._auto_id = ii.id_1
  ),
  rates AS (SELECT row_number() OVER () AS id, ts, dur, l3_hit_rate, l3_miss_rate FROM _arm_l3_rates),
  l3 AS (
    SELECT ii.id_0 AS id, r.l3_hit_rate, r.l3_miss_rate
    FROM _interval_intersect!((numbered, rates), ()) AS ii
    JOIN rates AS r ON r.id = ii.id_1
  )
SELECT
  p.id, p.ts, p.dur, d.dsu_freq, cast_int!(l.l3_hit_rate * p.dur) AS l3_hit_count, cast_int!(l.l3_miss_rate * p.dur) AS l3_miss_count
FROM numbered AS p
LEFT JOIN dsu AS d USING (id)
LEFT JOIN l3 AS l USING (id);

-- What each CPU did in each piece: (piece, ts, dur, cpu, policy, freq, idle, curve_value, static).
CREATE PERFETTO TABLE _wattson_cpu_pieces AS
SELECT ii.id_0 AS piece, ii.ts, ii.dur, s.cpu, s.policy, s.freq, s.idle, s.curve_value, s.static
FROM _interval_intersect!(
  (
    (SELECT p.id, p.ts, p.dur, m.cpu FROM _wattson_pieces AS p JOIN _dev_cpu_policy_map AS m),
    _ii_subquery!(_idle_freq_materialized)
  ),
  (cpu)
) AS ii
JOIN _idle_freq_materialized AS s ON s._auto_id = ii.id_1;

-- The CPU of each policy that draws most while it works in a piece: (piece, policy, freq). It decides for those that depend on it.
CREATE PERFETTO TABLE _wattson_votes AS
SELECT piece, policy, freq, max(coalesce(curve_value, 0)) AS curve_value
FROM _wattson_cpu_pieces
WHERE idle = -1 AND policy IN (SELECT dep_policy FROM _policy_dependencies)
GROUP BY piece, policy;

-- What CPUs with curves of two frequencies go by in each piece: (piece, cpu, dep_policy, dep_freq). Of several policies the one
-- whose CPU draws most; where none works, the lowest.
CREATE PERFETTO TABLE _wattson_cpu_dependencies AS
WITH
  choices AS (
    SELECT
      s.piece,
      s.cpu,
      d.dep_policy,
      coalesce(iif(d.dep_policy = 255, p.dsu_freq, v.freq), d.dep_freq) AS dep_freq,
      row_number() OVER (PARTITION BY s.piece, s.cpu ORDER BY v.curve_value DESC, d.dep_policy) AS place
    FROM _wattson_cpu_pieces AS s
    JOIN _policy_dependencies AS d USING (policy)
    JOIN _wattson_pieces AS p ON p.id = s.piece
    LEFT JOIN _wattson_votes AS v ON v.piece = s.piece AND v.policy = d.dep_policy
  )
SELECT piece, cpu, dep_policy, dep_freq FROM choices WHERE place = 1;
