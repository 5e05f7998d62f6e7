-- CPUs of phones by how strong they are.

INCLUDE PERFETTO MODULE intervals.overlap;

-- CPUs with the capacity or, without it, the highest frequency that they are ranked by.
CREATE PERFETTO TABLE _cores AS
SELECT
  c.ucpu,
  c.cpu,
  c.cluster_id,
  coalesce(c.capacity, (SELECT max(freq) FROM cpu_available_frequencies AS f WHERE f.ucpu = c.ucpu)) AS strength
FROM cpu AS c
WHERE c.cpu IS NOT NULL;

-- The cluster of each CPU: little, medium, big; NULL when all are alike or nothing is known.
CREATE PERFETTO TABLE android_cpu_cluster_mapping(
  -- Row of cpu.
  ucpu LONG,
  -- Number of the processor on its machine.
  cpu LONG,
  -- little, medium or big.
  cluster_type STRING
) AS
SELECT
  ucpu,
  cpu,
  CASE (SELECT count(DISTINCT strength) FROM _cores)
    WHEN 2 THEN iif(place = 1, 'little', 'big')
    WHEN 3 THEN CASE place WHEN 1 THEN 'little' WHEN 2 THEN 'medium' ELSE 'big' END
    WHEN 4 THEN CASE place WHEN 1 THEN 'little' WHEN 4 THEN 'big' ELSE 'medium' END
  END AS cluster_type
FROM (SELECT *, dense_rank() OVER (ORDER BY strength) AS place FROM _cores);

-- How many CPUs of a cluster run something.
CREATE PERFETTO FUNCTION _active_cpu_count_for_cluster_type(
  cluster_type STRING
)
RETURNS TABLE(
  ts TIMESTAMP,
  active_cpu_count LONG
) AS
SELECT ts, value AS active_cpu_count
FROM intervals_overlap_count!(
  (
    SELECT s.ts, s.dur
    FROM sched AS s
    JOIN thread AS t USING (utid)
    JOIN android_cpu_cluster_mapping AS m USING (ucpu)
    WHERE NOT coalesce(t.is_idle, 0) AND m.cluster_type = $cluster_type
  ),
  ts, dur
);
