-- Starts of applications from Android 13 on: a slice "launchingActivity#N" and, when it succeeded, a mark
-- "launchingActivity#N:completed-HOW:PACKAGE".

INCLUDE PERFETTO MODULE android.startup.startup_events;

-- The slices that ended: (ts, dur, startup_id, machine_id).
CREATE PERFETTO VIEW _startup_async_events AS
SELECT s.ts, s.dur, cast_int!(substr(s.name, length('launchingActivity#') + 1)) AS startup_id, t.machine_id
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE s.name GLOB 'launchingActivity#*' AND s.name NOT GLOB '*:*' AND s.dur > 0;

-- The marks: (startup_id, package_name, startup_type, ts, machine_id). The first ones of Android 13 do not tell how. One within a
-- process is no start.
CREATE PERFETTO VIEW _startup_complete_events AS
SELECT
  cast_int!(str_split(mark, ':', 0)) AS startup_id,
  str_split(mark, ':', 2) AS package_name,
  CASE str_split(mark, ':', 1)
    WHEN 'completed-cold' THEN 'cold'
    WHEN 'completed-warm' THEN 'warm'
    WHEN 'completed-hot' THEN 'hot'
  END AS startup_type,
  min(ts) AS ts,
  machine_id
FROM (
  SELECT s.ts, substr(s.name, length('launchingActivity#') + 1) AS mark, t.machine_id
  FROM slice AS s
  JOIN track AS t ON t.id = s.track_id
  WHERE
    s.name GLOB 'launchingActivity#*:completed*:*' AND s.name NOT GLOB '*:completed-same-process:*' AND s.dur = 0
)
GROUP BY 1, 2, 3, machine_id;

-- Both together: (startup_id, ts, ts_end, dur, dur_without_trampoline, package, startup_type, machine_id). Where an activity of
-- another package was launched first and opened the one that was to be seen, the last launch of the package counts alone.
CREATE PERFETTO TABLE _startups_minsdk33 AS
SELECT
  a.startup_id,
  a.ts,
  a.ts + a.dur AS ts_end,
  a.dur,
  coalesce(
    (
      SELECT e.ts_end - e.ts
      FROM _startup_events AS e
      WHERE
        e.machine_id = a.machine_id
        AND e.package_name = c.package_name
        AND e.ts < a.ts + a.dur
        AND e.ts > (
          SELECT min(f.ts)
          FROM _startup_events AS f
          WHERE f.machine_id = a.machine_id AND f.ts >= a.ts AND f.ts < a.ts + a.dur
        )
      ORDER BY e.ts DESC
      LIMIT 1
    ),
    a.dur
  ) AS dur_without_trampoline,
  c.package_name AS package,
  c.startup_type,
  a.machine_id
FROM _startup_async_events AS a
JOIN _startup_complete_events AS c USING (startup_id, machine_id)
ORDER BY a.ts;
