-- Touches of Pixel phones: the two interrupts of the sensor, and the service that makes fingers of its pictures.

-- The slices of the service: "algo->processFrame: … IN_TS=…" for each frame of the sensor.
CREATE PERFETTO TABLE _pixel_touch_twoshay_events AS
SELECT id, ts, dur, track_id, cast_int!(str_split(str_split(name, 'IN_TS=', 1), '.', 0)) AS in_ts
FROM slice
WHERE name GLOB 'algo->processFrame:*';

-- Interrupts during which the sensor's driver told their number, the counter gti_th_irq_index …
CREATE PERFETTO TABLE _pixel_touch_top_half_events AS
WITH
  interrupts AS (SELECT id, ts, dur, track_id FROM slice WHERE name GLOB 'IRQ (*)' AND dur > 0),
  numbers AS (
    SELECT c.ts, cast_int!(c.value) AS irq_idx
    FROM counter AS c
    JOIN counter_track AS t ON t.id = c.track_id
    WHERE t.name = 'gti_th_irq_index'
  ),
  -- on each track of interrupts the last one that began before a number was told
  latest AS (
    SELECT ts, irq_idx, last_non_null(id) OVER (PARTITION BY track_id ORDER BY ts, irq_idx ROWS UNBOUNDED PRECEDING) AS id
    FROM (
      SELECT ts, track_id, id, NULL AS irq_idx FROM interrupts
      UNION ALL
      SELECT n.ts, t.track_id, NULL, n.irq_idx FROM numbers AS n JOIN (SELECT DISTINCT track_id FROM interrupts) AS t
    )
  )
SELECT i.id, i.ts, i.dur, i.track_id, l.irq_idx
FROM latest AS l
JOIN interrupts AS i USING (id)
WHERE l.irq_idx IS NOT NULL AND l.ts <= i.ts + i.dur;

-- … and the work of the thread that they wake, with the frame that it reads from the sensor.
CREATE PERFETTO TABLE _pixel_touch_bottom_half_events AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.track_id,
  cast_int!(str_split(str_split(s.name, 'IRQ_IDX=', 1), '.', 0)) AS irq_idx,
  (
    SELECT cast_int!(str_split(str_split(c.name, 'IN_TS=', 1), '.', 0))
    FROM slice AS c
    WHERE c.parent_id = s.id AND c.name GLOB 'goog_offload_populate_frame:*'
    ORDER BY c.id
    LIMIT 1
  ) AS in_ts
FROM slice AS s
WHERE s.name GLOB 'gti_irq_thread_fn: IRQ_IDX=*';

-- What the service tells of the shift by resampling.
CREATE PERFETTO TABLE _pixel_touch_resample_offsets AS
SELECT c.ts, cast_int!(c.value) AS value
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
WHERE t.name = 'Resample latency offset'
ORDER BY c.ts;

-- Each frame that the service worked on, with the two interrupts that brought it; NULL where they are not known.
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
  -- What the service tells of the shift by resampling while it works; 0 when nothing.
  resample_latency_offset LONG
) AS
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
  coalesce(
    (SELECT r.value FROM _pixel_touch_resample_offsets AS r WHERE r.ts BETWEEN x.ts AND x.ts + x.dur LIMIT 1),
    0
  ) AS resample_latency_offset
FROM _pixel_touch_twoshay_events AS x
LEFT JOIN _pixel_touch_bottom_half_events AS b ON b.in_ts = x.in_ts
LEFT JOIN _pixel_touch_top_half_events AS t ON t.irq_idx = b.irq_idx;
