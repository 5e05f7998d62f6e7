-- The time that a table of spans leaves free.

INCLUDE PERFETTO MODULE std.metasql.unparenthesize;

CREATE PERFETTO MACRO __ifg_null(x Expr)
RETURNS Expr AS NULL;

-- The spans of each group, and rows without data for every gap between them from the start of the trace to its end:
-- (ts, dur, the groups, the data), by ts. A group whose only row has no ts is one gap; so is a table without rows.
CREATE PERFETTO MACRO _intervals_fill_gaps(
  -- Columns whose values make a group, in parentheses; (NULL): all rows are one.
  group_cols ExprList,
  -- Columns that gaps leave empty, in parentheses.
  data_cols ExprList,
  -- Spans: ts, dur, the groups, the data.
  data TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT ts, dur, metasql_unparenthesize_exprlist!($group_cols), metasql_unparenthesize_exprlist!($data_cols)
  FROM $data
  WHERE dur > 0
  UNION ALL
  SELECT
    free_ts AS ts,
    ts - free_ts AS dur,
    metasql_unparenthesize_exprlist!($group_cols),
    __intrinsic_token_apply!(__ifg_null, $data_cols)
  FROM (
    SELECT
      *,
      coalesce(
        max(_end_ts) OVER (
          PARTITION BY metasql_unparenthesize_exprlist!($group_cols)
          ORDER BY ts, _end_ts
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        trace_start()
      ) AS free_ts
    FROM (
      SELECT ts, ts + dur AS _end_ts, metasql_unparenthesize_exprlist!($group_cols)
      FROM $data
      WHERE dur > 0
      UNION ALL
      SELECT DISTINCT trace_end(), trace_end(), metasql_unparenthesize_exprlist!($group_cols)
      FROM $data
      UNION ALL
      SELECT trace_end(), trace_end(), __intrinsic_token_apply!(__ifg_null, $group_cols)
      WHERE NOT EXISTS (SELECT 1 FROM $data)
    )
  )
  WHERE ts > free_ts
  ORDER BY 1
);

-- The gaps between spans, from the start of the trace to its end: (ts, dur).
CREATE PERFETTO MACRO _intervals_gaps(
  -- Spans: ts, dur; they may overlap.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT gap_ts AS ts, next_ts - gap_ts AS dur
  FROM (
    SELECT
      max(ts + dur) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS gap_ts,
      lead(ts, 1, trace_end()) OVER (ORDER BY ts) AS next_ts
    FROM (
      SELECT ts, iif(dur = -1, trace_end() - ts, dur) AS dur FROM $intervals
      UNION ALL
      SELECT trace_start(), 0
    )
  )
  WHERE next_ts > gap_ts
);

-- The spans themselves and the gaps between them, by ts: (ts, dur, is_gap).
CREATE PERFETTO MACRO _intervals_with_gaps(
  -- Spans: ts, dur.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT ts, dur, 0 AS is_gap FROM $intervals
  UNION ALL
  SELECT ts, dur, 1 AS is_gap FROM _intervals_gaps!($intervals)
  ORDER BY ts
);
