-- Tracks of track events in the order in which they are shown.

INCLUDE PERFETTO MODULE viz.track_event_callstacks;

-- All of them, with how their parent orders its children: (id, name, parent_id, parent_ordering, rank, description).
CREATE PERFETTO TABLE _track_event_tracks_unordered AS
WITH
  told AS (
    SELECT
      id,
      name,
      parent_id,
      extract_arg(source_arg_set_id, 'child_ordering') AS ordering,
      extract_arg(source_arg_set_id, 'sibling_order_rank') AS rank,
      extract_arg(source_arg_set_id, 'description') AS description
    FROM track
    WHERE type GLOB '*_track_event'
  )
SELECT t.id, t.name, t.parent_id, p.ordering AS parent_ordering, coalesce(t.rank, 0) AS rank, t.description
FROM told AS t
LEFT JOIN told AS p ON p.id = t.parent_id;

-- The first moment of each that has any: (id, min_ts).
CREATE PERFETTO TABLE _min_ts_per_track AS
SELECT c.track_id AS id, min(c.ts) AS min_ts
FROM counter AS c
JOIN _track_event_tracks_unordered AS t ON t.id = c.track_id
GROUP BY c.track_id
UNION ALL
SELECT s.track_id, min(s.ts)
FROM slice AS s
JOIN _track_event_tracks_unordered AS t ON t.id = s.track_id
GROUP BY s.track_id
UNION ALL
SELECT s.track_id, min(s.ts)
FROM state AS s
JOIN _track_event_tracks_unordered AS t ON t.id = s.track_id
GROUP BY s.track_id;

-- Tracks that have others below them: (id).
CREATE PERFETTO TABLE _track_event_has_children AS
SELECT DISTINCT parent_id AS id
FROM track
WHERE type GLOB '*_track_event' AND parent_id IS NOT NULL;

-- Groups of tracks that are shown as one, in their order below their parent: by their names where it does not tell another one. Each track
-- has its place among all of its parent; the first one of a group counts.
CREATE PERFETTO TABLE _track_event_tracks_ordered_groups AS
WITH
  places AS (
    SELECT id, row_number() OVER (PARTITION BY parent_id ORDER BY name) AS order_id
    FROM _track_event_tracks_unordered
    WHERE coalesce(parent_ordering, 'lexicographic') = 'lexicographic'
    UNION ALL
    SELECT id, row_number() OVER (PARTITION BY parent_id ORDER BY rank)
    FROM _track_event_tracks_unordered
    WHERE parent_ordering = 'explicit'
    UNION ALL
    SELECT t.id, row_number() OVER (PARTITION BY t.parent_id ORDER BY m.min_ts)
    FROM _track_event_tracks_unordered AS t
    LEFT JOIN _min_ts_per_track AS m USING (id)
    WHERE t.parent_ordering = 'chronological'
  )
SELECT
  extract_arg(t.dimension_arg_set_id, 'upid') AS upid,
  extract_arg(t.dimension_arg_set_id, 'utid') AS utid,
  t.parent_id,
  t.type GLOB '*counter*' AS is_counter,
  t.type GLOB '*state*' AS is_state,
  t.name,
  min(extract_arg(t.source_arg_set_id, 'description')) AS description,
  min(c.unit) AS unit,
  min(extract_arg(t.source_arg_set_id, 'builtin_counter_type')) AS builtin_counter_type,
  min(extract_arg(t.source_arg_set_id, 'y_axis_share_key')) AS y_axis_share_key,
  max(m.id IS NOT NULL) AS has_data,
  max(b.id IS NOT NULL) AS has_children,
  max(k.track_id IS NOT NULL) AS has_callstacks,
  min(p.id) AS min_track_id,
  group_concat(p.id) AS track_ids,
  min(p.order_id) AS order_id
FROM places AS p
JOIN track AS t USING (id)
LEFT JOIN counter_track AS c USING (id)
LEFT JOIN _track_event_has_children AS b USING (id)
LEFT JOIN _min_ts_per_track AS m USING (id)
LEFT JOIN _track_event_tracks_with_callstacks AS k ON k.track_id = p.id
GROUP BY t.track_group_id, coalesce(t.track_group_id, t.id)
ORDER BY t.parent_id, p.order_id;
