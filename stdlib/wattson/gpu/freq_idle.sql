-- Frequency and power state of the GPU.

INCLUDE PERFETTO MODULE android.gpu.frequency;
INCLUDE PERFETTO MODULE android.gpu.mali_power_state;
INCLUDE PERFETTO MODULE counters.intervals;
INCLUDE PERFETTO MODULE intervals.intersect;

-- Power state of PowerVR GPUs.
CREATE PERFETTO TABLE _pvr_gpu_power_state(
  ts TIMESTAMP,
  dur DURATION,
  power_state LONG
) AS
SELECT i.ts, i.dur, CAST(i.value AS INT) AS power_state
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN track AS t ON t.id = c.track_id
  WHERE t.type = 'pixel_gpu_power_state' OR t.name = 'powervr_gpu_power_state'
)) AS i
UNION ALL
SELECT
  s.ts,
  iif(s.dur = -1, trace_end() - s.ts, s.dur) AS dur,
  CASE s.name WHEN 'OFF' THEN 0 WHEN 'PG' THEN 1 WHEN 'ON' THEN 2 ELSE -1 END AS power_state
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE t.name = 'powervr_gpu_power_state';

CREATE PERFETTO VIEW _gpu_power_state AS
SELECT ts, dur, power_state FROM android_mali_gpu_power_state
UNION ALL
SELECT ts, dur, power_state FROM _pvr_gpu_power_state;

-- Both together: (ts, dur, freq, power_state). One that is on though its frequency is told as 0 keeps the frequency that it had (or will
-- have), and draws as one that waits.
CREATE PERFETTO TABLE _gpu_freq_idle AS
WITH
  freqs AS (
    SELECT
      row_number() OVER () AS id,
      ts,
      dur,
      gpu_freq AS freq,
      iif(prev_gpu_freq = 0, next_gpu_freq, prev_gpu_freq) AS other_freq
    FROM android_gpu_frequency
    WHERE gpu_id = 0 AND dur > 0
  ),
  states AS (SELECT row_number() OVER () AS id, ts, dur, power_state FROM _gpu_power_state WHERE dur > 0)
SELECT
  ii.ts,
  ii.dur,
  iif(s.power_state = 2 AND f.freq = 0, f.other_freq, f.freq) AS freq,
  iif(s.power_state = 2 AND f.freq = 0, 1, s.power_state) AS power_state
FROM _interval_intersect!((freqs, states), ()) AS ii
JOIN freqs AS f ON f.id = ii.id_0
JOIN states AS s ON s.id = ii.id_1
ORDER BY ii.ts;

-- The frequency from the start of the trace to its end; NULL before the first sample.
CREATE PERFETTO VIEW _gapless_gpu_freq AS
SELECT trace_start() AS ts, min(ts) - trace_start() AS dur, NULL AS freq
FROM android_gpu_frequency
WHERE gpu_id = 0
HAVING min(ts) > trace_start()
UNION ALL
SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur, gpu_freq AS freq
FROM android_gpu_frequency
WHERE gpu_id = 0;

-- The same of the power state.
CREATE PERFETTO VIEW _gapless_gpu_power_state AS
SELECT trace_start() AS ts, min(ts) - trace_start() AS dur, NULL AS power_state
FROM _gpu_power_state
HAVING min(ts) > trace_start()
UNION ALL
SELECT ts, lead(ts, 1, trace_end()) OVER (ORDER BY ts) - ts AS dur, power_state
FROM _gpu_power_state;
