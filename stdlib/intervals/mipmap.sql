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

-- From where to where the rows of each group reach, and how many buckets that takes: (the group, trace_min_ts, trace_max_ts,
-- bucket_duration_ns, bucket_count).
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
    min(ts) AS trace_min_ts,
    max(ts + dur) AS trace_max_ts,
    $_bucket_duration_ns AS bucket_duration_ns,
    (max(ts + dur) - min(ts) + $_bucket_duration_ns - 1) / $_bucket_duration_ns AS bucket_count
  FROM $_source_table
  GROUP BY $_partition_column
);

-- Each group cut into buckets of equal length, from where its rows begin: (id, the group, bucket_index, ts, dur). The last one
-- reaches behind the rows.
CREATE PERFETTO MACRO _mipmap_buckets_table(
  -- Spans: ts, dur, the group.
  _source_table TableOrSubQuery,
  -- Column whose values make a group.
  _partition_column ColumnName,
  -- Length of a bucket in nanoseconds.
  _bucket_duration_ns Expr
)
RETURNS TableOrSubQuery AS
(
  WITH RECURSIVE
    _mm_groups AS MATERIALIZED (
      SELECT * FROM _mipmap_bucket_metadata!($_source_table, $_partition_column, $_bucket_duration_ns)
    ),
    _mm_buckets($_partition_column, bucket_index, ts, n) AS (
      SELECT $_partition_column, 0, trace_min_ts, bucket_count - 1 FROM _mm_groups WHERE bucket_count > 0
      UNION ALL
      SELECT $_partition_column, bucket_index + 1, ts + $_bucket_duration_ns, n - 1 FROM _mm_buckets WHERE n > 0
    )
  SELECT
    row_number() OVER (ORDER BY $_partition_column, bucket_index) AS id,
    $_partition_column,
    bucket_index,
    cast_int!(ts) AS ts,
    $_bucket_duration_ns AS dur
  FROM _mm_buckets
);

-- What fills most of each bucket, buckets that follow each other with the same in one row: (the group, id, ts, dur, group_hash), id
-- being the first of the spans that are the same there. Of what fills as much, what began first; buckets with nothing in them part
-- nothing.
CREATE PERFETTO MACRO _mipmap_merged(
  -- Spans: id, ts, dur, the group, group_hash; those with the same group_hash are the same.
  _source_slices_with_ids TableOrSubQuery,
  -- Buckets: id, the group, bucket_index, ts, dur.
  _buckets TableOrSubQuery,
  -- Column whose values make a group.
  _partition_column ColumnName,
  -- Length of a bucket in nanoseconds.
  _bucket_duration_ns Expr
)
RETURNS TableOrSubQuery AS
(
  WITH
    _mm_parts AS (
      SELECT b.id AS bucket, s.group_hash, min(s.id) AS span, sum(ii.dur) AS dur, min(s.ts) AS first_ts
      FROM _interval_intersect!(
        ((SELECT id, ts, dur, $_partition_column FROM $_buckets), (SELECT id, ts, dur, $_partition_column FROM $_source_slices_with_ids)),
        ($_partition_column)
      ) AS ii
      JOIN $_buckets AS b ON b.id = ii.id_0
      JOIN $_source_slices_with_ids AS s ON s.id = ii.id_1
      GROUP BY b.id, s.group_hash
    ),
    _mm_most AS (
      SELECT bucket, span, group_hash FROM (
        SELECT *, row_number() OVER (PARTITION BY bucket ORDER BY dur DESC, first_ts, group_hash) AS place FROM _mm_parts
      ) WHERE place = 1
    ),
    _mm_marked AS (
      SELECT b.*, m.span, m.group_hash, m.group_hash IS NOT lag(m.group_hash) OVER _mm_order AS is_new
      FROM $_buckets AS b
      JOIN _mm_most AS m ON m.bucket = b.id
      WINDOW _mm_order AS (PARTITION BY b.$_partition_column ORDER BY b.bucket_index)
    ),
    _mm_numbered AS (
      SELECT *, sum(is_new) OVER (PARTITION BY $_partition_column ORDER BY bucket_index) AS run FROM _mm_marked
    )
  SELECT
    $_partition_column,
    min(span) AS id,
    min(ts) AS ts,
    (max(bucket_index) - min(bucket_index) + 1) * $_bucket_duration_ns AS dur,
    group_hash
  FROM _mm_numbered
  GROUP BY $_partition_column, run
  ORDER BY min(ts)
);
