-- What modules about power share.

INCLUDE PERFETTO MODULE wattson.device_infos;

-- A table's spans with the numbers of their rows, as interval intersection wants them.
CREATE PERFETTO MACRO _ii_subquery(
  -- A table that SQL created: ts, dur.
  tab TableOrSubquery
)
RETURNS TableOrSubquery AS (SELECT _auto_id AS id, * FROM $tab WHERE dur > 0);

-- From the first slice wattson_start to the last wattson_stop: (ts, dur, name).
CREATE PERFETTO TABLE _wattson_markers_window AS
SELECT
  min(iif(name = 'wattson_start', ts, NULL)) AS ts,
  max(iif(name = 'wattson_stop', ts, NULL)) - min(iif(name = 'wattson_start', ts, NULL)) AS dur,
  'Markers window' AS name
FROM slice
WHERE name IN ('wattson_start', 'wattson_stop')
HAVING dur >= 0;

-- Spans of each CPU of the host from its samples: before the first one nothing is known, and of a CPU without any nothing at
-- all, so that every moment of the trace has a row: (ts, dur, cpu, value).
CREATE PERFETTO MACRO _gapless_by_cpu(
  -- Spans: ts, dur, cpu, value.
  spans TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _gap_spans AS MATERIALIZED (
      SELECT s.ts, s.dur, s.cpu, s.value FROM $spans AS s JOIN _dev_cpu_policy_map USING (cpu) WHERE s.dur > 0
    )
  SELECT ts, dur, cpu, value FROM _gap_spans
  UNION ALL
  SELECT trace_start(), coalesce(min(s.ts), trace_end()) - trace_start(), m.cpu, NULL
  FROM _dev_cpu_policy_map AS m
  LEFT JOIN _gap_spans AS s USING (cpu)
  GROUP BY m.cpu
  HAVING coalesce(min(s.ts), trace_end()) > trace_start()
  ORDER BY 1
);

-- The policy of the cache that CPUs share.
CREATE PERFETTO MACRO _dsu_dep()
RETURNS Expr AS 255;

-- Eight conditions as the bits of a number.
CREATE PERFETTO MACRO _bitmask8(
  b0 Expr,
  b1 Expr,
  b2 Expr,
  b3 Expr,
  b4 Expr,
  b5 Expr,
  b6 Expr,
  b7 Expr
)
RETURNS Expr AS
(
  iif($b0, 1, 0) | iif($b1, 2, 0) | iif($b2, 4, 0) | iif($b3, 8, 0)
  | iif($b4, 16, 0) | iif($b5, 32, 0) | iif($b6, 64, 0) | iif($b7, 128, 0)
);

-- One bit of such a number.
CREATE PERFETTO MACRO _extract_bit(
  mask Expr,
  -- 0 to 7.
  bit Expr
)
RETURNS Expr AS (($mask >> $bit) & 1);

-- Which of eight CPUs have a policy.
CREATE PERFETTO MACRO _policy_mask(
  target Expr,
  p0 Expr,
  p1 Expr,
  p2 Expr,
  p3 Expr,
  p4 Expr,
  p5 Expr,
  p6 Expr,
  p7 Expr
)
RETURNS Expr AS
_bitmask8!(
  $p0 = $target, $p1 = $target, $p2 = $target, $p3 = $target, $p4 = $target, $p5 = $target, $p6 = $target, $p7 = $target
);
