-- What accesses to the cache and to memory cost.
--
-- Empty; see wattson.device_infos for how to bring your own.

-- One row for each measured point.
CREATE PERFETTO TABLE _device_curves_l3(
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
) AS
SELECT '' AS device, 0 AS freq_khz, 0 AS dep_policy, 0 AS dep_freq, 0.0 AS l3_hit, 0.0 AS l3_miss WHERE 0;
