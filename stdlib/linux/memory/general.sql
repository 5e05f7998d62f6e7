-- Memory counters of processes as spans.

INCLUDE PERFETTO MODULE counters.intervals;

CREATE PERFETTO VIEW _all_counters_per_process AS
SELECT i.ts, i.dur, t.upid, i.value, i.track_id, t.name, i.id
FROM counter_leading_intervals!((
  SELECT c.id, c.ts, c.track_id, c.value
  FROM counter AS c
  JOIN process_counter_track AS t ON t.id = c.track_id
)) AS i
JOIN process_counter_track AS t ON t.id = i.track_id
WHERE i.dur > 0;
