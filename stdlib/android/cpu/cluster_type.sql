-- CPUs of phones by how strong they are.

INCLUDE PERFETTO MODULE intervals.overlap;

-- What the clusters are called, by how many there are.
CREATE PERFETTO TABLE _cores AS
WITH
  names(cluster_id, cluster_type, cluster_count) AS (
    VALUES
      (0, 'little', 2),
      (1, 'big', 2),
      (0, 'little', 3),
      (1, 'medium', 3),
      (2, 'big', 3),
      (0, 'little', 4),
      (1, 'medium', 4),
      (2, 'medium', 4),
      (3, 'big', 4)
  )
SELECT cluster_id, cluster_type, cluster_count FROM names;

-- The cluster of each CPU among those of its machine: little, medium, big; NULL when all are alike or nothing is known.
CREATE PERFETTO TABLE android_cpu_cluster_mapping(
  -- Row of cpu.
  ucpu LONG,
  -- Number of the processor on its machine.
  cpu LONG,
  -- little, medium or big.
  cluster_type STRING
) AS
WITH
  counts AS (
    SELECT machine_id, count(DISTINCT cluster_id) AS cluster_count
    FROM cpu
    GROUP BY machine_id
  )
SELECT c.ucpu, c.cpu, n.cluster_type
FROM cpu AS c
JOIN counts AS k ON k.machine_id = c.machine_id
LEFT JOIN _cores AS n ON n.cluster_id = c.cluster_id AND n.cluster_count = k.cluster_count
ORDER BY c.ucpu;

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
)
ORDER BY ts;
