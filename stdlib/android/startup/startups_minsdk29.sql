-- Starts of applications in Android 10 to 12, which count from the intent and tell whether they came to an end.

INCLUDE PERFETTO MODULE android.startup.startup_events;

-- When the system server noted something about launches: (ts, machine_id).
CREATE PERFETTO MACRO _startup_notes(note Expr)
RETURNS TableOrSubquery AS
(
  SELECT s.ts, t.machine_id FROM slice AS s JOIN track AS t ON t.id = s.track_id WHERE s.name = 'MetricsLogger:' || $note
);

CREATE PERFETTO VIEW _activity_intent_received AS
SELECT ts, machine_id FROM _startup_notes!('launchObserverNotifyIntentStarted');

-- From each intent to the next one: (ts, dur, machine_id).
CREATE PERFETTO TABLE _activity_intent_recv_spans AS
SELECT ts, lead(ts, 1, trace_end()) OVER (PARTITION BY machine_id ORDER BY ts) - ts AS dur, machine_id
FROM _activity_intent_received
ORDER BY ts;

-- Those that launched one activity.
CREATE PERFETTO VIEW _startup_partitions AS
SELECT i.ts, i.dur, i.machine_id
FROM _activity_intent_recv_spans AS i
JOIN _startup_events AS e ON e.machine_id = i.machine_id AND e.ts BETWEEN i.ts AND i.ts + i.dur
GROUP BY i.machine_id, i.ts, i.dur
HAVING count() = 1;

CREATE PERFETTO VIEW _activity_intent_startup_successful AS
SELECT ts, machine_id FROM _startup_notes!('launchObserverNotifyActivityLaunchFinished');

-- Launches that succeeded, from the intent on: (ts, ts_end, dur, package, startup_type, machine_id).
CREATE PERFETTO TABLE _startups_minsdk29 AS
SELECT i.ts, e.ts_end, e.ts_end - i.ts AS dur, e.package_name AS package, NULL AS startup_type, i.machine_id
FROM _startup_partitions AS i
JOIN _startup_events AS e
  ON e.machine_id = i.machine_id AND e.ts BETWEEN i.ts AND i.ts + i.dur AND e.ts_end BETWEEN i.ts AND i.ts + i.dur
WHERE EXISTS (
  SELECT 1
  FROM _activity_intent_startup_successful AS f
  WHERE f.machine_id = i.machine_id AND f.ts BETWEEN i.ts AND i.ts + i.dur
)
ORDER BY i.ts;
