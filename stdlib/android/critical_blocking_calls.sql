-- Work that keeps an application's user interface from going on: layout, drawing, locks, calls of other processes.

INCLUDE PERFETTO MODULE android.binder;
INCLUDE PERFETTO MODULE android.slices;
INCLUDE PERFETTO MODULE slices.with_context;

-- Names of such slices; * stands for anything.
CREATE PERFETTO TABLE _android_blocking_call_patterns AS
WITH
  patterns(pattern) AS (
    VALUES
      -- a turn of the user interface
      ('animation'), ('configChanged'), ('input'), ('layout'), ('measure'), ('traversal'), ('inflate*'),
      ('relayoutWindow*'), ('draw-VRI*'), ('Compose:*'), ('Recomposer:*'), ('ExpNotRow#*'),
      ('NotificationStackScrollLayout#onMeasure'), ('android.os.Handler: kotlinx.coroutines*'),
      -- the thread that draws
      ('postAndWait'), ('queueBuffer'), ('flush commands'), ('flush layers'), ('CreateGraphicsPipeline'),
      ('DrawFrames*'), ('drawLayer *'), ('Texture upload*'), ('ImageDecoder#decode*'),
      -- locks and the garbage collector
      ('Contending for pthread mutex'), ('Lock contention on*'), ('monitor contention with*'),
      ('SuspendThreadByThreadId*'), ('GC: Wait For*'),
      -- others
      ('*binder transaction*'), ('LoadApkAssetsFd*')
  )
SELECT pattern FROM patterns;

-- Whether a handler's callback is meant: "Handler: class$member". Those of frames and of input have slices of their own.
CREATE PERFETTO MACRO _is_handler_callback(
  -- Name of the slice.
  name Expr
)
RETURNS Expr AS (
  ($name GLOB '*Handler: *$*' OR $name GLOB '*.*.*: *$*' OR $name GLOB '*.*$*: #*')
  AND NOT regexp('Choreographer|[Ii]nput|^android[.]os[.]Handler: #', $name)
);

-- True when a slice of this name holds up the user interface; as a macro, which costs no call a row.
CREATE PERFETTO MACRO _is_relevant_blocking_call_expr(
  -- Name of the slice.
  slice_name Expr
)
RETURNS Expr AS (
  EXISTS (SELECT 1 FROM _android_blocking_call_patterns WHERE $slice_name GLOB pattern) OR _is_handler_callback!($slice_name)
);

-- The same as a function.
CREATE PERFETTO FUNCTION _is_relevant_blocking_call(
  -- Name of the slice.
  name STRING,
  -- Its depth; any will do.
  depth LONG
)
RETURNS BOOL AS
SELECT _is_relevant_blocking_call_expr!($name);

-- True for the work that notifications make.
CREATE PERFETTO FUNCTION _is_relevant_notifications_blocking_call(
  -- Name of the slice.
  name STRING,
  -- How long it took.
  dur DURATION
)
RETURNS BOOL AS
SELECT $name = 'NotificationStackScrollLayout#onMeasure' AND $dur > 0;

-- Each name that occurs is looked at once, however many slices have it.
CREATE PERFETTO TABLE _android_critical_blocking_call_names AS
SELECT name AS raw_name, android_standardize_slice_name(name) AS name
FROM (SELECT DISTINCT name FROM slice WHERE name IS NOT NULL)
WHERE _is_relevant_blocking_call_expr!(name);

-- Turns of the thread that draws …
CREATE PERFETTO TABLE _android_critical_blocking_calls_draw_frames AS
SELECT utid, id, ts, dur FROM thread_slice WHERE name GLOB 'DrawFrames*' ORDER BY ts;

-- … and waits for a buffer.
CREATE PERFETTO TABLE _android_critical_blocking_calls_wait_for_buffer_release AS
SELECT utid, ts, dur FROM thread_slice WHERE name = 'waitForBufferRelease' ORDER BY ts;

-- Slices of those names. Waiting for a buffer is not work: it does not count for the drawing around it.
CREATE PERFETTO TABLE _android_blocking_slices AS
WITH
  waits AS (
    SELECT d.id, sum(w.dur) AS dur
    FROM _android_critical_blocking_calls_draw_frames AS d
    JOIN _android_critical_blocking_calls_wait_for_buffer_release AS w
      ON w.utid = d.utid AND w.ts >= d.ts AND w.ts < d.ts + d.dur
    GROUP BY d.id
  )
SELECT
  s.id,
  n.raw_name,
  n.name,
  s.ts,
  iif(s.dur < 0, s.dur, max(s.dur - coalesce(w.dur, 0), 0)) AS dur,
  s.process_name,
  s.utid,
  s.upid
FROM thread_slice AS s
JOIN _android_critical_blocking_call_names AS n ON n.raw_name = s.name
LEFT JOIN waits AS w ON w.id = s.id;

-- All of them: (name, ts, dur, id, process_name, utid, upid, ts_end). Layers that are drawn count by their name and once
-- more together; calls of other processes by what is called.
CREATE PERFETTO TABLE _android_critical_blocking_calls AS
WITH
  calls AS (
    SELECT name, ts, dur, id, process_name, utid, upid FROM _android_blocking_slices
    UNION ALL
    SELECT 'drawLayer', ts, dur, id, process_name, utid, upid
    FROM _android_blocking_slices
    WHERE raw_name GLOB 'drawLayer *'
    UNION ALL
    SELECT aidl_name, client_ts, client_dur, binder_txn_id, client_process, client_utid, client_upid
    FROM android_binder_txns
    WHERE aidl_name IS NOT NULL AND is_sync
  )
SELECT name, ts, dur, id, process_name, utid, upid, ts + dur AS ts_end FROM calls;
