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
SELECT device, cluster, requests, freq, active
FROM __intrinsic_wattson_curves_tpu;
