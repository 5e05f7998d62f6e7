-- What the system server writes about starts of applications.

-- "MetricsLogger:launchObserverNotify…" and "launchingActivity#N…".
CREATE PERFETTO TABLE _startup_events AS
SELECT s.ts, s.dur, s.ts + s.dur AS ts_end, s.name
FROM slice AS s
JOIN process_track AS t ON t.id = s.track_id
JOIN process AS p USING (upid)
WHERE s.name GLOB 'launchingActivity#*' AND (p.name IS NULL OR p.name = 'system_server');
