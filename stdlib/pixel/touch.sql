-- Touches of Pixel phones: the two interrupts of the sensor, and the service that makes fingers of its pictures.

-- The slices of the service: "twoshay … in_ts=…" for each frame of the sensor.
CREATE PERFETTO TABLE _pixel_touch_twoshay_events AS
SELECT
  id,
  ts,
  dur,
  track_id,
  cast_int!(regexp_extract(name, 'in_ts=([0-9]+)')) AS in_ts,
  cast_int!(regexp_extract(name, 'resample_latency_offset=(-?[0-9]+)')) AS resample_latency_offset
FROM slice
WHERE name GLOB '*in_ts=*';

-- The interrupt itself …
CREATE PERFETTO TABLE _pixel_touch_top_half_events AS
SELECT id, ts, dur, track_id
FROM slice
WHERE name GLOB '*touch*' AND name GLOB 'IRQ (*';

-- … and the work of the thread that it wakes.
CREATE PERFETTO TABLE _pixel_touch_bottom_half_events AS
SELECT id, ts, dur, track_id
FROM slice
WHERE name GLOB '*touch*' AND name GLOB '*irq_thread*' AND name NOT GLOB 'IRQ (*';

-- Each frame with the interrupts before it.
CREATE PERFETTO TABLE pixel_touch_events(
  -- Time that the sensor gave the frame.
  in_ts LONG,
  -- Start of the interrupt.
  ts_pixel_touch_th TIMESTAMP,
  -- Length of the interrupt.
  dur_pixel_touch_th DURATION,
  -- The interrupt: row of slice.
  id_pixel_touch_th LONG,
  -- Track of the interrupt.
  track_pixel_touch_th JOINID(track.id),
  -- Start of the interrupt's thread.
  ts_pixel_touch_bh TIMESTAMP,
  -- Length of its work.
  dur_pixel_touch_bh DURATION,
  -- Its work: row of slice.
  id_pixel_touch_bh LONG,
  -- Track of its work.
  track_pixel_touch_bh JOINID(track.id),
  -- Start of the service's work.
  ts_pixel_touch TIMESTAMP,
  -- Length of the service's work.
  dur_pixel_touch DURATION,
  -- The service's work: row of slice.
  id_pixel_touch LONG,
  -- Track of the service's work.
  track_pixel_touch JOINID(track.id),
  -- What the service says of the shift by resampling.
  resample_latency_offset LONG
) AS
WITH
  chained AS (
    SELECT
      f.*,
      (SELECT b.id FROM _pixel_touch_bottom_half_events AS b WHERE b.ts <= f.ts ORDER BY b.ts DESC LIMIT 1) AS bh
    FROM _pixel_touch_twoshay_events AS f
  ),
  topped AS (
    SELECT
      c.*,
      (
        SELECT t.id
        FROM _pixel_touch_top_half_events AS t
        WHERE t.ts <= (SELECT b.ts FROM slice AS b WHERE b.id = c.bh)
        ORDER BY t.ts DESC
        LIMIT 1
      ) AS th
    FROM chained AS c
  )
SELECT
  x.in_ts,
  t.ts AS ts_pixel_touch_th,
  t.dur AS dur_pixel_touch_th,
  t.id AS id_pixel_touch_th,
  t.track_id AS track_pixel_touch_th,
  b.ts AS ts_pixel_touch_bh,
  b.dur AS dur_pixel_touch_bh,
  b.id AS id_pixel_touch_bh,
  b.track_id AS track_pixel_touch_bh,
  x.ts AS ts_pixel_touch,
  x.dur AS dur_pixel_touch,
  x.id AS id_pixel_touch,
  x.track_id AS track_pixel_touch,
  x.resample_latency_offset
FROM topped AS x
LEFT JOIN slice AS b ON b.id = x.bh
LEFT JOIN slice AS t ON t.id = x.th;
