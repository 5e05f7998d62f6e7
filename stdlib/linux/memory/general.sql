-- Memory counters of processes as spans.

INCLUDE PERFETTO MODULE counters.intervals;

-- The last value of a counter holds to the end of its process, or of the trace, and one nanosecond longer: it has a span
-- even at that end.
CREATE PERFETTO VIEW _all_counters_per_process AS
SELECT ts, dur, upid, value, track_id, name, id
FROM (
  SELECT
    i.ts,
    iif(i.next_value IS NULL, coalesce(p.end_ts, trace_end()) + 1 - i.ts, i.dur) AS dur,
    t.upid,
    i.value,
    i.track_id,
    t.name,
    i.id
  FROM counter_leading_intervals!((
    SELECT c.id, c.ts, c.track_id, c.value
    FROM counter AS c
    JOIN process_counter_track AS t ON t.id = c.track_id
  )) AS i
  JOIN process_counter_track AS t ON t.id = i.track_id
  JOIN process AS p USING (upid)
)
WHERE dur > 0;
