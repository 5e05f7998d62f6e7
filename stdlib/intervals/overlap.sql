-- How many spans overlap, and overlapping spans as one.

INCLUDE PERFETTO MODULE intervals.intersect;

INCLUDE PERFETTO MODULE std.metasql.unparenthesize;

-- How many spans are open from each moment at which that changes: (ts, value). Unfinished spans (-1) stay open.
CREATE PERFETTO MACRO intervals_overlap_count(
  -- Table with the spans.
  segments TableOrSubquery,
  -- Column with the begin of the spans.
  ts_column ColumnName,
  -- Column with the duration of the spans.
  dur_column ColumnName
)
RETURNS TableOrSubquery AS
(
  SELECT ts, sum(change) OVER (ORDER BY ts) AS value
  FROM (
    SELECT ts, sum(change) AS change
    FROM (
      SELECT $ts_column AS ts, 1 AS change FROM $segments
      UNION ALL
      SELECT $ts_column + $dur_column AS ts, -1 AS change FROM $segments WHERE $dur_column != -1
    )
    GROUP BY ts
  )
  ORDER BY ts
);

-- The same within each group: (ts, value, group_name).
CREATE PERFETTO MACRO intervals_overlap_count_by_group(
  -- Table with the spans.
  segments TableOrSubquery,
  -- Column with the begin of the spans.
  ts_column ColumnName,
  -- Column with the duration of the spans.
  dur_column ColumnName,
  -- What they are grouped by.
  group_column ColumnName
)
RETURNS TableOrSubquery AS
(
  SELECT ts, sum(change) OVER (PARTITION BY group_name ORDER BY ts) AS value, group_name
  FROM (
    SELECT ts, sum(change) AS change, group_name
    FROM (
      SELECT $ts_column AS ts, 1 AS change, $group_column AS group_name FROM $segments
      UNION ALL
      SELECT $ts_column + $dur_column AS ts, -1 AS change, $group_column AS group_name
      FROM $segments
      WHERE $dur_column != -1
    )
    GROUP BY group_name, ts
  )
  ORDER BY ts
);

-- Spans that overlap, or lie no further than epsilon apart, as one: (ts, dur). Unfinished spans (-1) are left out.
CREATE PERFETTO MACRO interval_merge_overlapping(
  -- Spans: ts, dur.
  intervals TableOrSubquery,
  -- The widest gap that does not count.
  epsilon Expr
)
RETURNS TableOrSubquery AS
(
  SELECT min(ts) AS ts, max(ts + dur) - min(ts) AS dur
  FROM (
    SELECT ts, dur, sum(is_first) OVER (ORDER BY ts, dur ROWS UNBOUNDED PRECEDING) AS island
    FROM (
      SELECT
        ts,
        dur,
        coalesce(
          ts > max(ts + dur) OVER (ORDER BY ts, dur ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) + $epsilon,
          1
        ) AS is_first
      FROM $intervals
      WHERE dur != -1
    )
  )
  GROUP BY island
  ORDER BY ts
);

-- Spans that overlap or touch as one, within each partition: (ts, dur, the partition columns). Unfinished spans (-1) are
-- left out.
CREATE PERFETTO MACRO interval_merge_overlapping_partitioned(
  -- Spans: ts, dur and the partition columns.
  intervals TableOrSubquery,
  -- Partition columns, in parentheses.
  partition_columns ColumnNameList
)
RETURNS TableOrSubquery AS
(
  SELECT
    min(ts) AS ts,
    max(ts + dur) - min(ts) AS dur,
    metasql_unparenthesize_exprlist!($partition_columns)
  FROM (
    SELECT
      *,
      sum(_first_of_island) OVER (
        PARTITION BY metasql_unparenthesize_exprlist!($partition_columns)
        ORDER BY ts, dur
        ROWS UNBOUNDED PRECEDING
      ) AS _island
    FROM (
      SELECT
        *,
        coalesce(
          ts > max(ts + dur) OVER (
            PARTITION BY metasql_unparenthesize_exprlist!($partition_columns)
            ORDER BY ts, dur
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
          ),
          1
        ) AS _first_of_island
      FROM $intervals
      WHERE dur != -1
    )
  )
  GROUP BY metasql_unparenthesize_exprlist!($partition_columns), _island
  ORDER BY ts
);

-- Whether any two spans overlap: (has_overlaps), 0 or 1. Unfinished spans (-1) are left out.
CREATE PERFETTO MACRO _intervals_overlap_in_table(
  -- Spans: ts, dur.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT coalesce(max(next_ts < ts + dur), 0) AS has_overlaps
  FROM (
    SELECT ts, dur, lead(ts) OVER (ORDER BY ts, dur) AS next_ts FROM $intervals WHERE dur != -1
  )
);

-- The spans below each root, then the roots without any: (root_id, root_ts, root_dur, id, parent_id, ts, dur), of which
-- the last four are NULL for those.
CREATE PERFETTO MACRO _intervals_merge_root_and_children(
  -- Roots: id, ts, dur.
  roots_table TableOrSubquery,
  -- Spans: root_id, id, parent_id, ts, dur; the parent of the outermost is the root.
  children_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _root AS (SELECT id AS root_id, ts AS root_ts, dur AS root_dur FROM $roots_table WHERE dur > 0),
    _child AS (SELECT root_id, id, parent_id, ts, dur FROM $children_table WHERE dur > 0)
  SELECT root_id, root_ts, root_dur, id, parent_id, ts, dur
  FROM _root
  JOIN _child USING (root_id)
  UNION ALL
  SELECT root_id, root_ts, root_dur, NULL, NULL, NULL, NULL
  FROM _root
  WHERE root_id NOT IN (SELECT parent_id FROM _child WHERE parent_id IS NOT NULL)
);

-- As above by time: the pieces of spans that lie inside a root of the same key:
-- (ts, dur, id, parent_id, root_id, root_ts, root_dur, the key).
CREATE PERFETTO MACRO _intervals_merge_root_and_children_by_intersection(
  -- Roots: id, ts, dur, the key.
  roots_table TableOrSubquery,
  -- Spans: id, parent_id, ts, dur, the key; parent_id is NULL where that is the root.
  children_table TableOrSubquery,
  -- What must be equal: a track, a thread.
  key ColumnName
)
RETURNS TableOrSubquery AS
(
  WITH
    _root AS (SELECT id, ts, dur, $key FROM $roots_table WHERE dur > 0),
    _child AS (SELECT id, parent_id, ts, dur, $key FROM $children_table WHERE dur > 0)
  SELECT
    i.ts,
    i.dur,
    c.id,
    coalesce(c.parent_id, r.id) AS parent_id,
    r.id AS root_id,
    r.ts AS root_ts,
    r.dur AS root_dur,
    i.$key
  FROM _interval_intersect!((_root, _child), ($key)) AS i
  JOIN _root AS r ON r.id = i.id_0
  JOIN _child AS c ON c.id = i.id_1
  WHERE i.dur > 0
);

-- Which span has each moment of a root: the one that began last, its parent after its end, the root where there is
-- none: (root_id, id, ts, dur). Spans and roots without a duration are left out.
CREATE PERFETTO MACRO _intervals_flatten(
  -- What the two macros above give.
  children_with_roots_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _all AS (
      SELECT root_id, root_ts, root_dur, id, parent_id, ts, dur
      FROM $children_with_roots_table
      WHERE root_dur > 0 AND coalesce(dur > 0, 1)
    ),
    _child AS (SELECT * FROM _all WHERE id IS NOT NULL),
    _change AS (
      SELECT root_id, ts, id, 1 AS is_begin, -dur AS order_key FROM _child
      UNION ALL
      SELECT root_id, ts + dur, coalesce(parent_id, root_id), 0, dur FROM _child
    ),
    -- At one time, a begin counts before an end; of several, that of the innermost begin or the outermost end.
    _last_change AS (
      SELECT root_id, ts, id
      FROM (
        SELECT
          root_id,
          ts,
          id,
          row_number() OVER (PARTITION BY root_id, ts ORDER BY is_begin DESC, order_key DESC, id DESC) AS place
        FROM _change
      )
      WHERE place = 1
    ),
    _piece AS (
      SELECT root_id, id, ts, lead(ts) OVER (PARTITION BY root_id ORDER BY ts) - ts AS dur FROM _last_change
    ),
    _extent AS (
      SELECT root_id, root_ts, root_ts + root_dur AS root_end, min(ts) AS first_ts, max(ts + dur) AS last_end
      FROM _child
      GROUP BY root_id
    )
  SELECT root_id, id, ts, dur FROM _piece WHERE dur > 0
  UNION ALL
  SELECT root_id, root_id, root_ts, first_ts - root_ts FROM _extent WHERE first_ts > root_ts
  UNION ALL
  SELECT root_id, root_id, last_end, root_end - last_end FROM _extent WHERE root_end > last_end
  UNION ALL
  SELECT DISTINCT root_id, root_id, root_ts, root_dur FROM _all WHERE id IS NULL
);
