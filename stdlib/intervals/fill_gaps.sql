-- The time that a table of spans leaves free.

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
