-- Counter tracks that have samples.

-- (id, cnt, min_value, max_value), one row a track.
CREATE PERFETTO TABLE _counter_track_summary AS
SELECT track_id AS id, count() AS cnt, min(value) AS min_value, max(value) AS max_value
FROM counter
GROUP BY track_id
ORDER BY track_id;
