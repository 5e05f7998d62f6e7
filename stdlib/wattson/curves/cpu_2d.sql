-- What CPUs draw by their frequency and that of something else.
--
-- Empty; see wattson.device_infos for how to bring your own.

-- One row for each measured point.
CREATE PERFETTO TABLE _device_curves_2d(
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
) AS
SELECT device, policy, freq_khz, dep_policy, dep_freq, static, active, idle0, idle1, interconnect
FROM __intrinsic_wattson_curves_cpu_2d;
