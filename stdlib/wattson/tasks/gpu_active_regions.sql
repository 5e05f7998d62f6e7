-- When the GPU was on though it worked for nobody.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE wattson.gpu.estimates;
INCLUDE PERFETTO MODULE wattson.gpu.freq_idle;
INCLUDE PERFETTO MODULE wattson.tasks.gpu_tasks;
INCLUDE PERFETTO MODULE wattson.utils;

-- Spans in which it had a frequency without a break: (ts, dur, region_id).
CREATE PERFETTO TABLE _gpu_active_regions AS
WITH
  states AS (
    SELECT ts, dur, freq > 0 AS is_on, lag(ts + dur) OVER (ORDER BY ts) AS end_before, lag(freq > 0) OVER (ORDER BY ts) AS on_before
    FROM _gpu_freq_idle
  ),
  numbered AS (
    SELECT *, sum(is_on AND NOT coalesce(on_before AND end_before = ts, 0)) OVER (ORDER BY ts) AS region_id FROM states
  )
SELECT min(ts) AS ts, max(ts + dur) - min(ts) AS dur, region_id
FROM numbered
WHERE is_on
GROUP BY region_id;

-- The work in them: (ts, dur, region_id, uid).
CREATE PERFETTO TABLE _gpu_active_region_tasks AS
SELECT ii.ts, ii.dur, r.region_id, t.uid
FROM _interval_intersect!((_ii_subquery!(_gpu_active_regions), _ii_subquery!(_gpu_tasks)), ()) AS ii
JOIN _gpu_active_regions AS r ON r._auto_id = ii.id_0
JOIN _gpu_tasks AS t ON t._auto_id = ii.id_1;

-- When the first work of each began, for whom, and when the last ended: (region_id, first_ts, first_uid, last_ts_end).
CREATE PERFETTO VIEW _gpu_active_region_boundaries AS
SELECT b.region_id, b.first_ts, t.uid AS first_uid, b.last_ts_end
FROM (
  SELECT region_id, min(ts) AS first_ts, max(ts + dur) AS last_ts_end FROM _gpu_active_region_tasks GROUP BY region_id
) AS b
JOIN _gpu_active_region_tasks AS t ON t.region_id = b.region_id AND t.ts = b.first_ts
GROUP BY b.region_id;

-- What is without work in them: (ts, dur, region_id).
CREATE PERFETTO TABLE _gaps_in_active_regions AS
SELECT ii.ts, ii.dur, r.region_id
FROM _interval_intersect!(
  (
    _ii_subquery!(_gpu_active_regions),
    (SELECT _auto_id AS id, ts, dur FROM _gpu_active_task_count WHERE active_tasks = 0)
  ),
  ()
) AS ii
JOIN _gpu_active_regions AS r ON r._auto_id = ii.id_0;

-- The same, by where it lies: (ts, dur, region_id, gap_type, first_uid). gap_type is 'start', 'middle', 'end', or 'idle' in one without
-- any work.
CREATE PERFETTO TABLE _all_gaps AS
SELECT
  g.ts,
  g.dur,
  g.region_id,
  CASE
    WHEN b.region_id IS NULL THEN 'idle'
    WHEN g.ts < b.first_ts THEN 'start'
    WHEN g.ts >= b.last_ts_end THEN 'end'
    ELSE 'middle'
  END AS gap_type,
  b.first_uid
FROM _gaps_in_active_regions AS g
LEFT JOIN _gpu_active_region_boundaries AS b USING (region_id);

-- Who has to answer for it: (ts, dur, uid). Before the first work it counts for the one that it was turned on for, later for nobody
-- (-1).
CREATE PERFETTO TABLE _gpu_active_region_gaps AS
SELECT ts, dur, CASE gap_type WHEN 'start' THEN first_uid WHEN 'idle' THEN NULL ELSE -1 END AS uid
FROM _all_gaps;

-- What it draws then: (ts, dur, uid, estimated_mw).
CREATE PERFETTO TABLE _gpu_gap_attribution AS
SELECT ii.ts, ii.dur, g.uid, e.gpu_mw AS estimated_mw
FROM _interval_intersect!((_ii_subquery!(_gpu_active_region_gaps), _ii_subquery!(_gpu_estimates_mw)), ()) AS ii
JOIN _gpu_active_region_gaps AS g ON g._auto_id = ii.id_0
JOIN _gpu_estimates_mw AS e ON e._auto_id = ii.id_1;
