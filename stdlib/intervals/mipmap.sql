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
