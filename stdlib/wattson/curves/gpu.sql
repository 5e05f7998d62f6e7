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
SELECT '' AS device, 0 AS freq_khz, 0.0 AS active, 0.0 AS idle1, 0.0 AS idle2 WHERE 0;
