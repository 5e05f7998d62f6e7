-- What the GPU draws by its frequency.
--
-- Empty; see wattson.device_infos for how to bring your own.

-- One row for each measured point.
CREATE PERFETTO TABLE _gpu_device_curves(
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
) AS
SELECT device, freq_khz, active, idle1, idle2
FROM __intrinsic_wattson_curves_gpu;
