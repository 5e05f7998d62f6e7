-- What the system server writes about starts of applications.

INCLUDE PERFETTO MODULE slices.with_context;

-- Its "launching: PACKAGE" slices: (ts, dur, ts_end, package_name, machine_id).
CREATE PERFETTO TABLE _startup_events AS
SELECT s.ts, s.dur, s.ts + s.dur AS ts_end, str_split(s.name, ': ', 1) AS package_name, t.machine_id
FROM slice AS s
JOIN process_track AS t ON t.id = s.track_id
JOIN process AS p USING (upid)
WHERE s.name GLOB 'launching: *' AND coalesce(p.name, 'system_server') = 'system_server';
