-- Starts of applications from Android 13 on: a slice "launchingActivity#N" and, when it succeeded, a mark
-- "launchingActivity#N:completed-HOW:PACKAGE".

-- The slices: (ts, dur, startup_id, machine_id).
CREATE PERFETTO VIEW _startup_async_events AS
SELECT s.ts, s.dur, cast_int!(regexp_extract(s.name, '#([0-9]+)$')) AS startup_id, t.machine_id
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE s.name GLOB 'launchingActivity#*' AND s.name NOT GLOB '*:*' AND s.dur != 0;

-- The marks: (startup_id, package_name, startup_type, ts, machine_id). The first ones of Android 13 do not tell how.
CREATE PERFETTO VIEW _startup_complete_events AS
SELECT
  cast_int!(regexp_extract(s.name, '#([0-9]+):')) AS startup_id,
  regexp_extract(s.name, ':completed[^:]*:(.*)$') AS package_name,
  regexp_extract(s.name, ':completed-(cold|warm|hot):') AS startup_type,
  min(s.ts) AS ts,
  t.machine_id
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE s.name GLOB 'launchingActivity#*:completed*:*' AND s.dur = 0
GROUP BY 1, 2, 3, t.machine_id;

-- Both together: (startup_id, ts, ts_end, dur, package, startup_type, machine_id).
CREATE PERFETTO TABLE _startups_minsdk33 AS
SELECT
  a.startup_id, a.ts, a.ts + a.dur AS ts_end, a.dur, c.package_name AS package, c.startup_type, a.machine_id
FROM _startup_async_events AS a
JOIN _startup_complete_events AS c USING (startup_id, machine_id)
ORDER BY a.ts;
