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

-- The pieces between them with what all CPUs share: (id, ts, dur, dsu_freq, l3_hit_count, l3_miss_count).
CREATE PERFETTO TABLE _wattson_pieces AS
WITH
  pieces AS (SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur FROM _wattson_cuts),
  numbered AS (
    SELECT row_number() OVER (ORDER BY p.ts) AS id, p.ts, p.dur
    FROM pieces AS p
    WHERE p.dur > 0 AND p.ts >= (SELECT min(ts) FROM _valid_window)
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

-- The CPU of each policy that draws most while it works in a piece, or has the highest frequency where that decides: (piece, policy,
-- freq). It decides for those that depend on it.
CREATE PERFETTO TABLE _wattson_votes AS
SELECT piece, policy, freq, max(iif(vote_by_freq, freq, coalesce(curve_value, 0))) AS curve_value
FROM _wattson_cpu_pieces
JOIN _dev_vote_by_freq USING (cpu)
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

-- What a CPU did over time, under names that tell it from others: (ts, dur, and the four columns).
CREATE PERFETTO MACRO _cpu_stats_subquery(
  -- The CPU.
  cpu Expr,
  -- What to call the column with what it draws,
  curve_col ColumnName,
  -- with what its cluster draws,
  static_col ColumnName,
  -- with its frequency,
  freq_col ColumnName,
  -- and with its idle state.
  idle_col ColumnName
)
RETURNS TableOrSubquery AS
(
  SELECT ts, dur, curve_value AS $curve_col, static AS $static_col, freq AS $freq_col, idle AS $idle_col
  FROM _idle_freq_materialized
  WHERE cpu = $cpu
);

-- Each CPU by itself …
CREATE PERFETTO TABLE _stats_cpu0 AS
SELECT ts, dur, cpu0_curve, static_0, freq_0, idle_0 FROM _cpu_stats_subquery!(0, cpu0_curve, static_0, freq_0, idle_0);

CREATE PERFETTO TABLE _stats_cpu1 AS
SELECT ts, dur, cpu1_curve, static_1, freq_1, idle_1 FROM _cpu_stats_subquery!(1, cpu1_curve, static_1, freq_1, idle_1);

CREATE PERFETTO TABLE _stats_cpu2 AS
SELECT ts, dur, cpu2_curve, static_2, freq_2, idle_2 FROM _cpu_stats_subquery!(2, cpu2_curve, static_2, freq_2, idle_2);

CREATE PERFETTO TABLE _stats_cpu3 AS
SELECT ts, dur, cpu3_curve, static_3, freq_3, idle_3 FROM _cpu_stats_subquery!(3, cpu3_curve, static_3, freq_3, idle_3);

CREATE PERFETTO TABLE _stats_cpu4 AS
SELECT ts, dur, cpu4_curve, static_4, freq_4, idle_4 FROM _cpu_stats_subquery!(4, cpu4_curve, static_4, freq_4, idle_4);

CREATE PERFETTO TABLE _stats_cpu5 AS
SELECT ts, dur, cpu5_curve, static_5, freq_5, idle_5 FROM _cpu_stats_subquery!(5, cpu5_curve, static_5, freq_5, idle_5);

CREATE PERFETTO TABLE _stats_cpu6 AS
SELECT ts, dur, cpu6_curve, static_6, freq_6, idle_6 FROM _cpu_stats_subquery!(6, cpu6_curve, static_6, freq_6, idle_6);

CREATE PERFETTO TABLE _stats_cpu7 AS
SELECT ts, dur, cpu7_curve, static_7, freq_7, idle_7 FROM _cpu_stats_subquery!(7, cpu7_curve, static_7, freq_7, idle_7);

-- … a column of one in a piece …
CREATE PERFETTO MACRO _wattson_of_cpu(
  -- The column.
  what ColumnName,
  -- The CPU.
  n Expr
)
RETURNS Expr AS max(iif(s.cpu = $n, s.$what, NULL));

-- … and all beside each other, one row a piece. A frequency that is not known is 0, and a CPU whose state is not known, or that is not there,
-- in the deepest.
CREATE PERFETTO TABLE _all_stats AS
SELECT
  p.ts,
  p.dur,
  _wattson_of_cpu!(curve_value, 0) AS cpu0_curve, _wattson_of_cpu!(static, 0) AS static_0,
  coalesce(_wattson_of_cpu!(freq, 0), 0) AS freq_0, coalesce(_wattson_of_cpu!(idle, 0), (SELECT idle FROM _deepest_idle)) AS idle_0,
  _wattson_of_cpu!(curve_value, 1) AS cpu1_curve, _wattson_of_cpu!(static, 1) AS static_1,
  coalesce(_wattson_of_cpu!(freq, 1), 0) AS freq_1, coalesce(_wattson_of_cpu!(idle, 1), (SELECT idle FROM _deepest_idle)) AS idle_1,
  _wattson_of_cpu!(curve_value, 2) AS cpu2_curve, _wattson_of_cpu!(static, 2) AS static_2,
  coalesce(_wattson_of_cpu!(freq, 2), 0) AS freq_2, coalesce(_wattson_of_cpu!(idle, 2), (SELECT idle FROM _deepest_idle)) AS idle_2,
  _wattson_of_cpu!(curve_value, 3) AS cpu3_curve, _wattson_of_cpu!(static, 3) AS static_3,
  coalesce(_wattson_of_cpu!(freq, 3), 0) AS freq_3, coalesce(_wattson_of_cpu!(idle, 3), (SELECT idle FROM _deepest_idle)) AS idle_3,
  _wattson_of_cpu!(curve_value, 4) AS cpu4_curve, _wattson_of_cpu!(static, 4) AS static_4,
  coalesce(_wattson_of_cpu!(freq, 4), 0) AS freq_4, coalesce(_wattson_of_cpu!(idle, 4), (SELECT idle FROM _deepest_idle)) AS idle_4,
  _wattson_of_cpu!(curve_value, 5) AS cpu5_curve, _wattson_of_cpu!(static, 5) AS static_5,
  coalesce(_wattson_of_cpu!(freq, 5), 0) AS freq_5, coalesce(_wattson_of_cpu!(idle, 5), (SELECT idle FROM _deepest_idle)) AS idle_5,
  _wattson_of_cpu!(curve_value, 6) AS cpu6_curve, _wattson_of_cpu!(static, 6) AS static_6,
  coalesce(_wattson_of_cpu!(freq, 6), 0) AS freq_6, coalesce(_wattson_of_cpu!(idle, 6), (SELECT idle FROM _deepest_idle)) AS idle_6,
  _wattson_of_cpu!(curve_value, 7) AS cpu7_curve, _wattson_of_cpu!(static, 7) AS static_7,
  coalesce(_wattson_of_cpu!(freq, 7), 0) AS freq_7, coalesce(_wattson_of_cpu!(idle, 7), (SELECT idle FROM _deepest_idle)) AS idle_7,
  p.dsu_freq,
  p.l3_hit_count,
  p.l3_miss_count
FROM _wattson_pieces AS p
JOIN _wattson_cpu_pieces AS s ON s.piece = p.id
GROUP BY p.id;

-- The same with what is known without the other CPUs: which of them work, as bits, and whether all sleep deeply.
CREATE PERFETTO TABLE _w_independent_cpus_calc AS
SELECT
  *,
  ((idle_0 = -1) << 0) | ((idle_1 = -1) << 1) | ((idle_2 = -1) << 2) | ((idle_3 = -1) << 3)
  | ((idle_4 = -1) << 4) | ((idle_5 = -1) << 5) | ((idle_6 = -1) << 6) | ((idle_7 = -1) << 7) AS active_mask,
  min(idle_0, idle_1, idle_2, idle_3, idle_4, idle_5, idle_6, idle_7) >= (SELECT idle FROM _deepest_idle)
    AS is_deep_idle
FROM _all_stats;

-- The configurations that the CPUs had, each once, with a number to know them by.
CREATE PERFETTO VIEW _w_dependent_cpus_unique AS
SELECT DISTINCT
  freq_0, idle_0, cpu0_curve, static_0,
  freq_1, idle_1, cpu1_curve, static_1,
  freq_2, idle_2, cpu2_curve, static_2,
  freq_3, idle_3, cpu3_curve, static_3,
  freq_4, idle_4, cpu4_curve, static_4,
  freq_5, idle_5, cpu5_curve, static_5,
  freq_6, idle_6, cpu6_curve, static_6,
  freq_7, idle_7, cpu7_curve, static_7,
  dsu_freq,
  hash(
    freq_0, idle_0, freq_1, idle_1,
    freq_2, idle_2, freq_3, idle_3,
    freq_4, idle_4, freq_5, idle_5,
    freq_6, idle_6, freq_7, idle_7,
    coalesce(dsu_freq, 0)
  ) AS config_hash
FROM _w_independent_cpus_calc;
