-- Tables that are there before the trace is.

-- What CPUs draw by their frequency; empty, as nobody's measurements come with Meridian (see wattson.device_infos).
CREATE PERFETTO TABLE __intrinsic_wattson_curves_cpu_1d(
  -- The model's name for the device.
  device STRING,
  -- Policy of the CPU.
  policy LONG,
  -- Frequency in kHz.
  freq_khz LONG,
  -- What the cluster draws as long as one of its CPUs is awake, in mW.
  static DOUBLE,
  -- What it draws while it works, in mW.
  active DOUBLE,
  -- What it draws in idle state 0, in mW.
  idle0 DOUBLE,
  -- What it draws in idle state 1, in mW.
  idle1 DOUBLE
)
AS
SELECT '' AS device, 0 AS policy, 0 AS freq_khz, 0.0 AS static, 0.0 AS active, 0.0 AS idle0, 0.0 AS idle1 WHERE 0;

-- What CPUs draw by their frequency and that of another cluster; empty, as nobody's measurements come with Meridian (see wattson.device_infos).
CREATE PERFETTO TABLE __intrinsic_wattson_curves_cpu_2d(
  -- The model's name for the device.
  device STRING,
  -- Policy of the CPU.
  policy LONG,
  -- Frequency in kHz.
  freq_khz LONG,
  -- Policy that it depends on; 255 for the unit that clusters share (DSU).
  dep_policy LONG,
  -- Frequency of that, in kHz.
  dep_freq LONG,
  -- What the cluster draws as long as one of its CPUs is awake, in mW.
  static DOUBLE,
  -- What it draws while it works, in mW.
  active DOUBLE,
  -- What it draws in idle state 0, in mW.
  idle0 DOUBLE,
  -- What it draws in idle state 1, in mW.
  idle1 DOUBLE,
  -- What the interconnect draws, in mW.
  interconnect DOUBLE
)
AS
SELECT '' AS device, 0 AS policy, 0 AS freq_khz, 0 AS dep_policy, 0 AS dep_freq, 0.0 AS static, 0.0 AS active, 0.0 AS idle0, 0.0 AS idle1, 0.0 AS interconnect WHERE 0;

-- What GPUs draw by their frequency; empty, as nobody's measurements come with Meridian (see wattson.device_infos).
CREATE PERFETTO TABLE __intrinsic_wattson_curves_gpu(
  -- The model's name for the device.
  device STRING,
  -- Frequency in kHz.
  freq_khz LONG,
  -- What it draws while it works, in mW.
  active DOUBLE,
  -- What it draws in idle state 1, in mW.
  idle1 DOUBLE,
  -- What it draws in power state 2, in mW.
  idle2 DOUBLE
)
AS
SELECT '' AS device, 0 AS freq_khz, 0.0 AS active, 0.0 AS idle1, 0.0 AS idle2 WHERE 0;

-- What accesses to the L3 cache cost; empty, as nobody's measurements come with Meridian (see wattson.device_infos).
CREATE PERFETTO TABLE __intrinsic_wattson_curves_l3(
  -- The model's name for the device.
  device STRING,
  -- Frequency in kHz.
  freq_khz LONG,
  -- Policy that it depends on; 255 for the unit that clusters share (DSU).
  dep_policy LONG,
  -- Frequency of that, in kHz.
  dep_freq LONG,
  -- What an access to the cache costs, in units of 1e-6 kW ns.
  l3_hit DOUBLE,
  -- What an access to memory costs, in units of 1e-6 kW ns.
  l3_miss DOUBLE
)
AS
SELECT '' AS device, 0 AS freq_khz, 0 AS dep_policy, 0 AS dep_freq, 0.0 AS l3_hit, 0.0 AS l3_miss WHERE 0;

-- What TPUs draw by their load; empty, as nobody's measurements come with Meridian (see wattson.device_infos).
CREATE PERFETTO TABLE __intrinsic_wattson_curves_tpu(
  -- The model's name for the device.
  device STRING,
  -- The cluster.
  cluster LONG,
  -- Requests at once; more than 8 count as 8.
  requests LONG,
  -- Frequency in kHz.
  freq LONG,
  -- What it draws while it works, in mW.
  active DOUBLE
)
AS
SELECT '' AS device, 0 AS cluster, 0 AS requests, 0 AS freq, 0.0 AS active WHERE 0;
