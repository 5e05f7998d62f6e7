-- Work that held up the user interface, by the frames of critical user journeys that it fell into.

INCLUDE PERFETTO MODULE android.critical_blocking_calls;
INCLUDE PERFETTO MODULE android.cujs.base;

-- Frames up to where the next one of the layer, or the next turn of the thread, begins: work that a late frame pushes beyond
-- its end still belongs to it: (ts, ui_thread_utid, render_thread_utid, frame_id, layer_id, cuj_id, cuj_name, ts_end).
CREATE PERFETTO TABLE _extended_frame_boundary AS
WITH
  frames AS (
    SELECT *, lead(frame_ts) OVER (PARTITION BY cuj_id, layer_id ORDER BY frame_id) AS next_ts
    FROM _android_distinct_frames_in_cuj
  ),
  turns AS (
    SELECT
      f.cuj_id, f.frame_id, min(t.ts) AS next_turn_ts
    FROM frames AS f
    JOIN _android_jank_cuj_do_frames AS t ON t.cuj_id = f.cuj_id AND t.utid = f.ui_thread_utid AND t.ts >= f.ts_end
    GROUP BY f.cuj_id, f.frame_id
  )
SELECT
  f.frame_ts AS ts,
  f.ui_thread_utid,
  f.render_thread_utid,
  f.frame_id,
  f.layer_id,
  f.cuj_id,
  f.cuj_name,
  coalesce(min(f.next_ts, t.next_turn_ts), f.next_ts, t.next_turn_ts, f.ts_end) AS ts_end
FROM frames AS f
LEFT JOIN turns AS t USING (cuj_id, frame_id)
ORDER BY f.frame_id;

-- The work of the frames' threads, the one of the user interface and the one that draws, cut to each frame: (dur, ts, upid, name, process_name, utid, frame_id, layer_id, cuj_id, cuj_name).
CREATE PERFETTO TABLE _blocking_calls_frame_cuj AS
SELECT
  min(b.ts_end, f.ts_end) - max(b.ts, f.ts) AS dur,
  max(b.ts, f.ts) AS ts,
  b.upid,
  b.name,
  b.process_name,
  b.utid,
  f.frame_id,
  f.layer_id,
  f.cuj_id,
  f.cuj_name
FROM _extended_frame_boundary AS f
JOIN _android_critical_blocking_calls AS b ON b.utid = f.ui_thread_utid
WHERE (b.ts BETWEEN f.ts AND f.ts_end OR b.ts_end BETWEEN f.ts AND f.ts_end)
UNION ALL
SELECT
  min(b.ts_end, f.ts_end) - max(b.ts, f.ts) AS dur,
  max(b.ts, f.ts) AS ts,
  b.upid,
  b.name,
  b.process_name,
  b.utid,
  f.frame_id,
  f.layer_id,
  f.cuj_id,
  f.cuj_name
FROM _extended_frame_boundary AS f
JOIN _android_critical_blocking_calls AS b ON b.utid = f.render_thread_utid
WHERE b.utid IS NOT f.ui_thread_utid AND (b.ts BETWEEN f.ts AND f.ts_end OR b.ts_end BETWEEN f.ts AND f.ts_end);
