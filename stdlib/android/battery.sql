-- A phone's battery.

-- What was measured at each moment.
CREATE PERFETTO VIEW android_battery_charge(
  -- When it was read.
  ts TIMESTAMP,
  -- Average current in microamperes.
  current_avg_ua DOUBLE,
  -- Charge in percent.
  capacity_percent DOUBLE,
  -- Charge in microampere hours.
  charge_uah DOUBLE,
  -- Current in microamperes; what the sign means is the device's choice.
  current_ua DOUBLE,
  -- Voltage in microvolts.
  voltage_uv DOUBLE,
  -- Energy left in microwatt hours.
  energy_counter_uwh DOUBLE,
  -- Power in milliwatts.
  power_mw DOUBLE
) AS
SELECT
  c.ts,
  max(iif(t.name = 'batt.current.avg_ua', c.value, NULL)) AS current_avg_ua,
  max(iif(t.name = 'batt.capacity_pct', c.value, NULL)) AS capacity_percent,
  max(iif(t.name = 'batt.charge_uah', c.value, NULL)) AS charge_uah,
  max(iif(t.name = 'batt.current_ua', c.value, NULL)) AS current_ua,
  max(iif(t.name = 'batt.voltage_uv', c.value, NULL)) AS voltage_uv,
  max(iif(t.name = 'batt.energy_counter_uwh', c.value, NULL)) AS energy_counter_uwh,
  max(iif(t.name = 'batt.power_mw', c.value, NULL)) AS power_mw
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
WHERE t.name GLOB 'batt.*'
GROUP BY c.ts;
