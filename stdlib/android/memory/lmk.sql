-- Processes that were ended for want of memory.

INCLUDE PERFETTO MODULE android.oom_adjuster;

-- The name of a reason that the low memory killer tells by number.
CREATE PERFETTO FUNCTION _android_lmk_kill_reason_string(
  kill_reason LONG
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $kill_reason BETWEEN 1000 AND 1999 THEN 'VENDOR_REASON'
    ELSE coalesce(
      (
        WITH
          names(number, name) AS (
            VALUES
              (0, 'PRESSURE_AFTER_KILL'),
              (1, 'NOT_RESPONDING'),
              (2, 'LOW_SWAP_AND_THRASHING'),
              (3, 'LOW_MEM_AND_SWAP'),
              (4, 'LOW_MEM_AND_THRASHING'),
              (5, 'DIRECT_RECL_AND_THRASHING'),
              (6, 'LOW_MEM_AND_SWAP_UTIL'),
              (7, 'LOW_FILECACHE_AFTER_THRASHING'),
              (8, 'LOW_MEM'),
              (9, 'DIRECT_RECL_STUCK')
          )
        SELECT name FROM names WHERE number = $kill_reason
      ),
      'UNKNOWN'
    )
  END;

-- Events that say what happened: "lmk,pid,reason,score", at a moment or as a slice.
CREATE PERFETTO TABLE _android_lmk_marks AS
SELECT
  s.ts,
  s.dur,
  cast_int!(str_split(s.name, ',', 1)) AS pid,
  cast_int!(str_split(s.name, ',', 2)) AS kill_reason_raw,
  cast_int!(str_split(s.name, ',', 3)) AS oom_score_adj,
  t.name AS track_name,
  t.id IN (SELECT id FROM process_track) AS is_process_track,
  t.machine_id
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE s.name GLOB 'lmk,*';

-- The newest phones tell of a moment …
CREATE PERFETTO TABLE _lmk_instant_events AS
SELECT ts, pid, kill_reason_raw, oom_score_adj, machine_id FROM _android_lmk_marks WHERE dur = 0 AND track_name = 'lowmemorykiller' AND is_process_track;

-- … older ones of a span …
CREATE PERFETTO TABLE _legacy_lmk_events AS
SELECT ts, pid, kill_reason_raw, oom_score_adj, machine_id FROM _android_lmk_marks WHERE dur > 0;

-- … and what those before have instead: a counter with the number of the process.
CREATE PERFETTO TABLE _kill_one_process_events AS
SELECT
  k.ts,
  cast_int!(k.value) AS pid,
  NULL AS kill_reason_raw,
  (
    SELECT i.score
    FROM android_oom_adj_intervals AS i
    JOIN process AS p USING (upid)
    WHERE p.machine_id = t.machine_id AND p.pid = cast_int!(k.value) AND k.ts >= i.ts AND k.ts < i.ts + i.dur
    LIMIT 1
  ) AS oom_score_adj,
  t.machine_id
FROM counter AS k
JOIN track AS t ON t.id = k.track_id
WHERE t.name = 'kill_one_process' AND k.value > 0;

-- The best of the three that the trace has.
CREATE PERFETTO VIEW _android_lmk_events AS
SELECT * FROM _lmk_instant_events
UNION ALL
SELECT * FROM _legacy_lmk_events WHERE NOT EXISTS (SELECT 1 FROM _lmk_instant_events)
UNION ALL
SELECT * FROM _kill_one_process_events WHERE NOT EXISTS (SELECT 1 FROM _lmk_instant_events) AND NOT EXISTS (SELECT 1 FROM _legacy_lmk_events);

-- Each process with the moment of its end; the best source that the trace has.
CREATE PERFETTO TABLE android_lmk_events(
  -- When the process was ended.
  ts TIMESTAMP,
  -- Row of process.
  upid JOINID(process.upid),
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the process.
  process_name STRING,
  -- Readiness to be ended: -1000 never, 1000 first.
  oom_score_adj LONG,
  -- Why, in words.
  kill_reason STRING,
  -- Why, as a number.
  kill_reason_raw LONG
) AS
SELECT
  k.ts,
  p.upid,
  k.pid,
  p.name AS process_name,
  k.oom_score_adj,
  _android_lmk_kill_reason_string(k.kill_reason_raw) AS kill_reason,
  k.kill_reason_raw
FROM _android_lmk_events AS k
LEFT JOIN process AS p
  ON p.upid = (
    SELECT o.upid
    FROM process AS o
    WHERE
      o.machine_id = k.machine_id
      AND o.pid = k.pid
      AND k.ts BETWEEN coalesce(o.start_ts, k.ts) AND coalesce(o.end_ts, k.ts)
    ORDER BY o.upid DESC
    LIMIT 1
  )
ORDER BY k.ts;
