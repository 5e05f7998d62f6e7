-- Spans between slices of a single process.

-- From each slice of one name to the first of another that follows; to its end, or to its start.
CREATE PERFETTO FUNCTION _android_generate_start_to_end_slices(
  start_pattern STRING,
  end_pattern STRING,
  inclusive BOOL
)
RETURNS TABLE(
  name STRING,
  ts TIMESTAMP,
  dur DURATION
) AS
SELECT name, ts, ts_end - ts AS dur
FROM (
  SELECT
    s.name,
    s.ts,
    (
      SELECT e.ts + iif($inclusive, e.dur, 0)
      FROM slice AS e
      WHERE e.name GLOB $end_pattern AND e.ts > s.ts
      ORDER BY e.ts
      LIMIT 1
    ) AS ts_end
  FROM slice AS s
  WHERE s.name GLOB $start_pattern
)
WHERE ts_end IS NOT NULL;
