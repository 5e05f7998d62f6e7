-- Tracks of track events in the order in which they are shown.

INCLUDE PERFETTO MODULE viz.summary.slices;
INCLUDE PERFETTO MODULE viz.summary.counters;
INCLUDE PERFETTO MODULE viz.track_event_callstacks;


-- Tracks of track events that have slices or counters, or children that have.
CREATE PERFETTO TABLE _track_event_tracks_unordered AS
WITH RECURSIVE
  used(id) AS (
    SELECT t.id
    FROM track AS t
    WHERE
      extract_arg(t.source_arg_set_id, 'source') = 'descriptor'
      AND (t.id IN (SELECT id FROM _slice_track_summary) OR t.id IN (SELECT id FROM _counter_track_summary))
    UNION
    SELECT t.parent_id FROM used AS u JOIN track AS t USING (id) WHERE t.parent_id IS NOT NULL
  )
SELECT
  t.id,
  t.name,
  t.parent_id,
  t.track_group_id,
  t.type,
  extract_arg(t.dimension_arg_set_id, 'upid') AS upid,
  extract_arg(t.dimension_arg_set_id, 'utid') AS utid,
  t.id IN (SELECT id FROM counter_track) AS is_counter,
  t.id IN (SELECT id FROM state_track) AS is_state,
  extract_arg(t.source_arg_set_id, 'child_ordering') AS ordering,
  coalesce(extract_arg(t.source_arg_set_id, 'sibling_order_rank'), 0) AS rank,
  extract_arg(t.source_arg_set_id, 'description') AS description,
  extract_arg(t.source_arg_set_id, 'y_axis_share_key') AS y_axis_share_key,
  extract_arg(t.source_arg_set_id, 'builtin_counter_type') AS builtin_counter_type
FROM used AS u
JOIN track AS t USING (id)
WHERE extract_arg(t.source_arg_set_id, 'source') = 'descriptor';

-- The first moment of each track.
CREATE PERFETTO TABLE _min_ts_per_track AS
SELECT track_id AS id, min(ts) AS min_ts FROM slice GROUP BY track_id
UNION ALL
SELECT track_id AS id, min(ts) AS min_ts FROM counter GROUP BY track_id;

-- Tracks that have others below them.
CREATE PERFETTO TABLE _track_event_has_children AS
SELECT DISTINCT parent_id AS id
FROM _track_event_tracks_unordered
WHERE parent_id IS NOT NULL;

-- Groups of tracks that are shown as one, in their order below their parent.
CREATE PERFETTO TABLE _track_event_tracks_ordered_groups AS
WITH
  grouped AS (
    SELECT
      min(t.id) AS min_track_id,
      group_concat(t.id) AS track_ids,
      min(t.name) AS name,
      min(t.parent_id) AS parent_id,
      min(t.upid) AS upid,
      min(t.utid) AS utid,
      max(t.is_counter) AS is_counter,
      max(t.is_state) AS is_state,
      min(t.rank) AS rank,
      min(t.description) AS description,
      min(t.y_axis_share_key) AS y_axis_share_key,
      min(t.builtin_counter_type) AS builtin_counter_type,
      min(m.min_ts) AS min_ts,
      max(s.cnt) IS NOT NULL OR max(c.cnt) IS NOT NULL AS has_data,
      max(t.id IN (SELECT id FROM _track_event_has_children)) AS has_children,
      max(t.id IN (SELECT track_id FROM _track_event_tracks_with_callstacks)) AS has_callstacks
    FROM _track_event_tracks_unordered AS t
    LEFT JOIN _min_ts_per_track AS m USING (id)
    LEFT JOIN _slice_track_summary AS s USING (id)
    LEFT JOIN _counter_track_summary AS c USING (id)
    GROUP BY coalesce('g' || t.track_group_id, 't' || t.id)
  )
SELECT
  g.min_track_id,
  g.track_ids,
  g.name,
  g.parent_id,
  g.upid,
  g.utid,
  g.is_counter,
  g.is_state,
  g.has_data,
  g.has_children,
  g.has_callstacks,
  g.description,
  g.y_axis_share_key,
  g.builtin_counter_type,
  (SELECT unit FROM counter_track AS c WHERE c.id = g.min_track_id) AS unit,
  row_number() OVER (
    PARTITION BY g.parent_id
    ORDER BY
      iif(p.ordering = 'explicit', g.rank, 0),
      iif(p.ordering = 'chronological', g.min_ts, 0),
      g.name
  ) AS order_id
FROM grouped AS g
LEFT JOIN _track_event_tracks_unordered AS p ON p.id = g.parent_id
ORDER BY g.parent_id, order_id;
