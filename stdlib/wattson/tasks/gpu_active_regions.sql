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

-- The first work in each: (region_id, ts, uid).
CREATE PERFETTO TABLE _gpu_active_region_starts AS
SELECT r.region_id, min(ii.ts) AS ts, t.uid
FROM _interval_intersect!((_ii_subquery!(_gpu_active_regions), _ii_subquery!(_gpu_tasks)), ()) AS ii
JOIN _gpu_active_regions AS r ON r._auto_id = ii.id_0
JOIN _gpu_tasks AS t ON t._auto_id = ii.id_1
GROUP BY r.region_id;

-- What is without work in them: (ts, dur, uid). Before the first work it counts for the one that it was turned on for, later for
-- nobody (-1).
CREATE PERFETTO TABLE _gpu_active_region_gaps AS
SELECT ii.ts, ii.dur, iif(ii.ts < s.ts, s.uid, -1) AS uid
FROM _interval_intersect!(
  (
    _ii_subquery!(_gpu_active_regions),
    (SELECT _auto_id AS id, ts, dur FROM _gpu_active_task_count WHERE active_tasks = 0)
  ),
  ()
) AS ii
JOIN _gpu_active_regions AS r ON r._auto_id = ii.id_0
LEFT JOIN _gpu_active_region_starts AS s USING (region_id);

-- What it draws then: (ts, dur, uid, estimated_mw).
CREATE PERFETTO TABLE _gpu_gap_attribution AS
SELECT ii.ts, ii.dur, g.uid, e.gpu_mw AS estimated_mw
FROM _interval_intersect!((_ii_subquery!(_gpu_active_region_gaps), _ii_subquery!(_gpu_estimates_mw)), ()) AS ii
JOIN _gpu_active_region_gaps AS g ON g._auto_id = ii.id_0
JOIN _gpu_estimates_mw AS e ON e._auto_id = ii.id_1;
