-- Spans from two sets of moments.

-- Each start with the first end behind it: (ts, dur). Starts without an end are left out.
CREATE PERFETTO MACRO _interval_create(
  -- Starts: ts.
  starts_table TableOrSubquery,
  -- Ends: ts.
  ends_table TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT c0 AS ts, c1 AS dur
  FROM __intrinsic_table_ptr(
    __intrinsic_interval_create(
      (SELECT __intrinsic_timestamp_set_agg(s.ts) FROM (SELECT ts FROM $starts_table) AS s),
      (SELECT __intrinsic_timestamp_set_agg(e.ts) FROM (SELECT ts FROM $ends_table) AS e)
    )
  )
  WHERE __intrinsic_table_ptr_bind(c0, 'ts') AND __intrinsic_table_ptr_bind(c1, 'dur')
);
