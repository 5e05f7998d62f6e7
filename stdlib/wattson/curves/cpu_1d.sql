-- What CPUs draw by their frequency.
--
-- Empty; see wattson.device_infos for how to bring your own.

-- One row for each measured point.
CREATE PERFETTO TABLE _device_curves_1d(
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
) AS
SELECT device, policy, freq_khz, static, active, idle0, idle1
FROM __intrinsic_wattson_curves_cpu_1d;
