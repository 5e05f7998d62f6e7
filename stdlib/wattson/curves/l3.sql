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
SELECT device, freq_khz, dep_policy, dep_freq, l3_hit, l3_miss
FROM __intrinsic_wattson_curves_l3;
