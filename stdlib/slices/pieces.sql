-- Slices cut where others inside them begin and end.

-- The pieces of slices in which no slice inside them is open: (slice_id, ts, dur, track_id).
CREATE PERFETTO MACRO _slice_pieces(
  -- Slices, all of their tracks: id, ts, dur, track_id, depth, parent_id.
  slices TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    -- moments at which the deepest slice of a track may change
    _fs_changes AS (
      SELECT track_id, ts, id AS slice_id, depth, 0 AS is_end FROM $slices WHERE dur != 0
      UNION ALL
      -- behind a child its parent goes on; what ends beyond the last time there is ends with it
      SELECT track_id, ts + min(dur, 9223372036854775807 - max(ts, 0)) AS ts, parent_id AS slice_id, depth - 1 AS depth, 1 AS is_end FROM $slices WHERE dur > 0
    )
  SELECT slice_id, ts, dur, track_id
  FROM (
    SELECT
      track_id,
      ts,
      slice_id,
      -- of one moment the last counts, those before it are empty: starts behind ends, the deepest start, the outermost end
      lead(ts, 1, trace_end()) OVER (PARTITION BY track_id ORDER BY ts, is_end DESC, iif(is_end, -depth, depth)) - ts AS dur
    FROM _fs_changes
  )
  WHERE dur > 0 AND slice_id IS NOT NULL
);
