-- How many spans overlap, and overlapping spans as one.

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

-- What each nested set of spans covers by itself: spans that overlap are cut so that at each moment the one that began
-- last has it: (ts, dur, id).
CREATE PERFETTO MACRO _intervals_flatten(
  -- Spans: id, ts, dur; nested or disjoint.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT ts, dur, id
  FROM (
    SELECT
      ts,
      dur,
      id,
      row_number() OVER (PARTITION BY group_id ORDER BY span_ts DESC, id DESC) AS place
    FROM (
      SELECT i.ts, i.dur, i.group_id, i.id, s.ts AS span_ts
      FROM interval_self_intersect!($intervals) AS i
      JOIN $intervals AS s USING (id)
      WHERE i.interval_ends_at_ts = 0
    )
  )
  WHERE place = 1
  ORDER BY ts
);
