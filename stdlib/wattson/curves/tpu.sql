-- What the TPU draws by its frequency and its load.
--
-- Empty; see wattson.device_infos for how to bring your own.

-- One row for each measured point.
CREATE PERFETTO TABLE _tpu_device_curves(
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
) AS
SELECT '' AS device, 0 AS cluster, 0 AS requests, 0 AS freq, 0.0 AS active WHERE 0;
