-- Power curves of the device that the trace is from.

INCLUDE PERFETTO MODULE wattson.device_infos;

-- Curves of CPUs: (freq_khz, static, active, idle0, idle1).
CREATE PERFETTO TABLE _filtered_curves_1d AS
SELECT f.freq AS freq_khz, 0.0 AS static, 0.0 AS active, 0.0 AS idle0, 0.0 AS idle1
FROM cpu_available_frequencies AS f
JOIN _wattson_device AS d
WHERE f.freq IS NULL;

-- Curves of GPUs: (freq_khz, active, idle1, idle2).
CREATE PERFETTO TABLE _gpu_filtered_curves AS
SELECT f.freq AS freq_khz, 0.0 AS active, 0.0 AS idle1, 0.0 AS idle2
FROM cpu_available_frequencies AS f
JOIN _wattson_device AS d
WHERE f.freq IS NULL;
