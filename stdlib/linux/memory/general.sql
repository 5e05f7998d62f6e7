-- Memory counters of processes as spans.

-- The last value of a counter holds to the end of its process, or of the trace, and one nanosecond longer: it has a span
-- even at that end.
CREATE PERFETTO VIEW _all_counters_per_process AS
SELECT ts, dur, upid, value, track_id, name, id
FROM (
  SELECT
    c.ts,
    lead(c.ts, 1, coalesce(p.end_ts, trace_end()) + 1) OVER (PARTITION BY c.track_id ORDER BY c.ts) - c.ts AS dur,
    t.upid,
    c.value,
    c.track_id,
    t.name,
    c.id
  FROM counter AS c
  JOIN process_counter_track AS t ON t.id = c.track_id
  JOIN process AS p USING (upid)
)
WHERE dur >= 0;
