-- What the host draws: CPUs, the unit that they share, GPU and TPU.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE wattson.cpu.estimates;
INCLUDE PERFETTO MODULE wattson.device_infos;
INCLUDE PERFETTO MODULE wattson.gpu.estimates;
INCLUDE PERFETTO MODULE wattson.tpu.estimates;
INCLUDE PERFETTO MODULE wattson.utils;

-- Each may be missing: outer joins.
CREATE VIRTUAL TABLE _cpu_gpu_system_state_mw USING span_outer_join(_cpu_estimates_mw, _gpu_estimates_mw);

CREATE VIRTUAL TABLE _cpu_gpu_tpu_system_state_mw USING span_outer_join(_tpu_estimates_mw, _cpu_gpu_system_state_mw);

-- All in mW, one row wherever anything changes.
CREATE PERFETTO TABLE _system_state_mw AS
SELECT ts, dur, cpu0_mw, cpu1_mw, cpu2_mw, cpu3_mw, cpu4_mw, cpu5_mw, cpu6_mw, cpu7_mw, dsu_scu_mw, gpu_mw, tpu_mw
FROM _cpu_gpu_tpu_system_state_mw;

-- The mean of one of them over a window, in mW.
CREATE PERFETTO MACRO _mean_mw(
  -- The column.
  rail ColumnName
)
RETURNS Expr AS (sum(s.$rail * w.dur) / nullif(sum(w.dur), 0));

-- All of them over a window.
CREATE PERFETTO FUNCTION _windowed_system_state_mw(
  -- When the window begins.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION
)
RETURNS TABLE(
  -- CPU 0, in mW.
  cpu0_mw DOUBLE,
  -- CPU 1, in mW.
  cpu1_mw DOUBLE,
  -- CPU 2, in mW.
  cpu2_mw DOUBLE,
  -- CPU 3, in mW.
  cpu3_mw DOUBLE,
  -- CPU 4, in mW.
  cpu4_mw DOUBLE,
  -- CPU 5, in mW.
  cpu5_mw DOUBLE,
  -- CPU 6, in mW.
  cpu6_mw DOUBLE,
  -- CPU 7, in mW.
  cpu7_mw DOUBLE,
  -- What CPUs share, in mW.
  dsu_scu_mw DOUBLE,
  -- The GPU, in mW.
  gpu_mw DOUBLE,
  -- The TPU, in mW.
  tpu_mw DOUBLE
) AS
SELECT
  _mean_mw!(cpu0_mw) AS cpu0_mw,
  _mean_mw!(cpu1_mw) AS cpu1_mw,
  _mean_mw!(cpu2_mw) AS cpu2_mw,
  _mean_mw!(cpu3_mw) AS cpu3_mw,
  _mean_mw!(cpu4_mw) AS cpu4_mw,
  _mean_mw!(cpu5_mw) AS cpu5_mw,
  _mean_mw!(cpu6_mw) AS cpu6_mw,
  _mean_mw!(cpu7_mw) AS cpu7_mw,
  _mean_mw!(dsu_scu_mw) AS dsu_scu_mw,
  _mean_mw!(gpu_mw) AS gpu_mw,
  _mean_mw!(tpu_mw) AS tpu_mw
FROM _interval_intersect_single!($ts, $dur, _ii_subquery!(_system_state_mw)) AS w
JOIN _system_state_mw AS s ON s._auto_id = w.id;

-- Policy of a CPU.
CREATE PERFETTO MACRO _policy_of(
  -- The CPU.
  n Expr
)
RETURNS Expr AS (SELECT m.policy FROM _dev_cpu_policy_map AS m WHERE m.cpu = $n);

-- Means of all parts in windows: (cpu0_poli .. cpu7_poli, cpu0_mw .. tpu_mw, period_dur, period_id).
CREATE PERFETTO MACRO _wattson_base_components_avg_mw(
  -- The windows: ts, dur, period_id.
  window_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    _policy_of!(0) AS cpu0_poli,
    _policy_of!(1) AS cpu1_poli,
    _policy_of!(2) AS cpu2_poli,
    _policy_of!(3) AS cpu3_poli,
    _policy_of!(4) AS cpu4_poli,
    _policy_of!(5) AS cpu5_poli,
    _policy_of!(6) AS cpu6_poli,
    _policy_of!(7) AS cpu7_poli,
    _mean_mw!(cpu0_mw) AS cpu0_mw,
    _mean_mw!(cpu1_mw) AS cpu1_mw,
    _mean_mw!(cpu2_mw) AS cpu2_mw,
    _mean_mw!(cpu3_mw) AS cpu3_mw,
    _mean_mw!(cpu4_mw) AS cpu4_mw,
    _mean_mw!(cpu5_mw) AS cpu5_mw,
    _mean_mw!(cpu6_mw) AS cpu6_mw,
    _mean_mw!(cpu7_mw) AS cpu7_mw,
    _mean_mw!(dsu_scu_mw) AS dsu_scu_mw,
    _mean_mw!(gpu_mw) AS gpu_mw,
    _mean_mw!(tpu_mw) AS tpu_mw,
    sum(w.dur) AS period_dur,
    w.id_0 AS period_id
  FROM _interval_intersect!(
    ((SELECT period_id AS id, ts, dur FROM $window_table), _ii_subquery!(_system_state_mw)),
    ()
  ) AS w
  JOIN _system_state_mw AS s ON s._auto_id = w.id_1
  GROUP BY w.id_0
);
