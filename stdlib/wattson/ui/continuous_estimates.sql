-- What the host draws, as tracks for the web UI: a row for each value, not for each change of something else.

INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE wattson.estimates;

-- Spans in which one of the columns of _system_state_mw stays the same.
CREATE PERFETTO MACRO _get_continuous_estimates(
  -- The column.
  rail ColumnName
)
RETURNS TableOrSubquery AS
(
  SELECT ts, dur, value AS $rail
  FROM counter_leading_intervals!((
    SELECT _auto_id AS id, ts, 0 AS track_id, $rail AS value FROM _system_state_mw WHERE $rail IS NOT NULL
  ))
);

CREATE PERFETTO TABLE _system_state_cpu0_mw AS
SELECT *, 0 AS cpu FROM _get_continuous_estimates!(cpu0_mw);

CREATE PERFETTO TABLE _system_state_cpu1_mw AS
SELECT *, 1 AS cpu FROM _get_continuous_estimates!(cpu1_mw);

CREATE PERFETTO TABLE _system_state_cpu2_mw AS
SELECT *, 2 AS cpu FROM _get_continuous_estimates!(cpu2_mw);

CREATE PERFETTO TABLE _system_state_cpu3_mw AS
SELECT *, 3 AS cpu FROM _get_continuous_estimates!(cpu3_mw);

CREATE PERFETTO TABLE _system_state_cpu4_mw AS
SELECT *, 4 AS cpu FROM _get_continuous_estimates!(cpu4_mw);

CREATE PERFETTO TABLE _system_state_cpu5_mw AS
SELECT *, 5 AS cpu FROM _get_continuous_estimates!(cpu5_mw);

CREATE PERFETTO TABLE _system_state_cpu6_mw AS
SELECT *, 6 AS cpu FROM _get_continuous_estimates!(cpu6_mw);

CREATE PERFETTO TABLE _system_state_cpu7_mw AS
SELECT *, 7 AS cpu FROM _get_continuous_estimates!(cpu7_mw);

CREATE PERFETTO TABLE _system_state_dsu_scu_mw AS
SELECT * FROM _get_continuous_estimates!(dsu_scu_mw);

CREATE PERFETTO TABLE _system_state_gpu_mw AS
SELECT * FROM _get_continuous_estimates!(gpu_mw);

CREATE PERFETTO TABLE _system_state_tpu_mw AS
SELECT * FROM _get_continuous_estimates!(tpu_mw);
