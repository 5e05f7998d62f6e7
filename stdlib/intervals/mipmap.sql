-- Spans added up in buckets of equal length.

INCLUDE PERFETTO MODULE intervals.intersect;

-- The time that spans take in each bucket of the trace: (bucket, ts, dur, total_dur, count).
CREATE PERFETTO MACRO _intervals_in_buckets(
  -- Spans: id, ts, dur.
  intervals TableOrSubquery,
  -- Length of a bucket.
  bucket_dur Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    b.id AS bucket,
    b.ts,
    b.dur,
    sum(ii.dur) AS total_dur,
    count() AS count
  FROM _interval_intersect!(
    (
      (SELECT quantum_ts AS id, ts, dur FROM __intrinsic_window(trace_start(), trace_dur(), $bucket_dur)),
      (SELECT id, ts, dur FROM $intervals WHERE dur >= 0)
    ),
    ()
  ) AS ii
  JOIN (SELECT quantum_ts AS id, ts, dur FROM __intrinsic_window(trace_start(), trace_dur(), $bucket_dur)) AS b
    ON b.id = ii.id_0
  GROUP BY b.id
  ORDER BY b.id
);

-- From where to where the rows of each group reach, and how many buckets that takes: (the group, min_ts, max_ts_end, bucket_count).
CREATE PERFETTO MACRO _mipmap_bucket_metadata(
  -- Spans: ts, dur, the group.
  _source_table TableOrSubQuery,
  -- Column whose values make a group.
  _partition_column ColumnName,
  -- Length of a bucket in nanoseconds.
  _bucket_duration_ns Expr
)
RETURNS TableOrSubQuery AS
(
  SELECT
    $_partition_column,
    min(ts) AS min_ts,
    max(ts + dur) AS max_ts_end,
    (max(ts + dur) - min(ts) + $_bucket_duration_ns - 1) / $_bucket_duration_ns AS bucket_count
  FROM $_source_table
  GROUP BY $_partition_column
);

-- Spans cut into buckets that begin where they do: (id, ts, dur, group_id), group_id being the id of the span. The last one of a
-- span ends with it.
CREATE PERFETTO MACRO _mipmap_buckets_table(
  -- Spans: id, ts, dur.
  intervals TableOrSubquery,
  -- Length of a bucket.
  bucket_dur Expr
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _mm_buckets(group_id, ts, ts_end) AS (
      SELECT id, ts, ts + dur FROM $intervals WHERE dur > 0
      UNION ALL
      SELECT group_id, ts + $bucket_dur, ts_end FROM _mm_buckets WHERE ts + $bucket_dur < ts_end
    )
  SELECT row_number() OVER (ORDER BY group_id, ts) AS id, ts, min($bucket_dur, ts_end - ts) AS dur, group_id FROM _mm_buckets
);

-- What fills most of each bucket, buckets that follow each other with the same in one row: (ts, dur, group_id, id), id being that of
-- one of the spans.
CREATE PERFETTO MACRO _mipmap_merged(
  -- Spans: id, ts, dur, group_id, group_hash; those with the same group_hash are the same.
  spans TableOrSubquery,
  -- Buckets: id, ts, dur, group_id.
  buckets TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _mm_parts AS (
      SELECT b.id AS bucket, min(s.id) AS id, s.group_hash, sum(ii.dur) AS dur
      FROM _interval_intersect!(
        ((SELECT id, ts, dur, group_id FROM $buckets), (SELECT id, ts, dur, group_id FROM $spans WHERE dur > 0)),
        (group_id)
      ) AS ii
      JOIN $buckets AS b ON b.id = ii.id_0
      JOIN $spans AS s ON s.id = ii.id_1
      GROUP BY b.id, s.group_hash
    ),
    _mm_most AS (
      SELECT bucket, id, group_hash FROM (
        SELECT *, row_number() OVER (PARTITION BY bucket ORDER BY dur DESC, id) AS place FROM _mm_parts
      ) WHERE place = 1
    ),
    _mm_marked AS (
      SELECT
        b.*,
        m.id AS span,
        m.group_hash IS NOT lag(m.group_hash) OVER _mm_order
        OR b.ts IS NOT lag(b.ts + b.dur) OVER _mm_order AS is_new
      FROM $buckets AS b
      JOIN _mm_most AS m ON m.bucket = b.id
      WINDOW _mm_order AS (PARTITION BY b.group_id ORDER BY b.ts)
    ),
    _mm_numbered AS (
      SELECT *, sum(is_new) OVER (PARTITION BY group_id ORDER BY ts) AS run FROM _mm_marked
    )
  SELECT min(ts) AS ts, max(ts + dur) - min(ts) AS dur, group_id, min(span) AS id
  FROM _mm_numbered
  GROUP BY group_id, run
);
