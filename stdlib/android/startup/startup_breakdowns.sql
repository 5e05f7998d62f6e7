-- What starts of applications spent their time on, by the main thread.

INCLUDE PERFETTO MODULE android.startup.startups;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.hierarchy;
INCLUDE PERFETTO MODULE slices.pieces;
INCLUDE PERFETTO MODULE slices.with_context;

-- The reason that a slice stands for, or NULL.
CREATE PERFETTO FUNCTION _normalize_android_string(
  name STRING
)
RETURNS STRING AS
WITH
  rules(pattern, reason) AS (
    VALUES
      ('mm_vmscan_direct_reclaim', 'kernel_memory_reclaim'),
      ('GC: Wait For*', 'userspace_memory_reclaim'),
      ('monitor contention*', 'monitor_contention'),
      ('Lock contention on a monitor lock*', 'monitor_contention'),
      ('Lock contention*', 'art_lock_contention'),
      ('binder transaction', 'binder'),
      ('binder reply', 'binder'),
      ('Contending for pthread mutex', 'mutex_contention'),
      ('dlopen*', 'dlopen'),
      ('VerifyClass*', 'verify_class'),
      ('inflate', 'inflate'),
      ('Choreographer#doFrame*', 'choreographer_do_frame'),
      ('OpenDexFilesFromOat*', 'open_dex_files_from_oat'),
      ('ResourcesManager#getResources', 'resources_manager_get_resources'),
      ('bindApplication', 'bind_application'),
      ('activityStart', 'activity_start'),
      ('activityResume', 'activity_resume'),
      ('activityRestart', 'activity_restart'),
      ('clientTransactionExecuted', 'client_transaction_executed')
  )
SELECT reason FROM rules WHERE $name GLOB pattern LIMIT 1;

-- Why a start took the time of a piece: a wait for a device, else the deepest slice that says so, else an interrupt, else the
-- state of the thread.
CREATE PERFETTO FUNCTION _startup_breakdown_reason(
  -- The slice, as _normalize_android_string() calls it.
  name STRING,
  -- State of the thread.
  state STRING,
  -- Does it wait for a device?
  io_wait LONG,
  -- Was it woken by an interrupt?
  irq_context LONG
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $io_wait = 1 THEN 'io'
    WHEN $name IS NOT NULL THEN $name
    WHEN $irq_context = 1 THEN 'irq'
    ELSE $state
  END;

-- The starts by process, with a number of their own: those of several users have several processes. Of starts of a process that
-- overlap the first one counts.
CREATE PERFETTO TABLE _startup_root_slices AS
WITH
  roots AS (
    SELECT
      coalesce((SELECT max(id) FROM slice), -1) + row_number() OVER (ORDER BY s.ts, s.startup_id, p.upid) AS id,
      s.ts,
      s.dur,
      s.startup_id,
      s.startup_type,
      c.name AS process_name,
      p.upid,
      t.utid
    FROM android_startup_processes AS p
    JOIN android_startups AS s USING (startup_id)
    JOIN process AS c ON c.upid = p.upid
    JOIN thread AS t ON t.upid = p.upid AND t.is_main_thread
    WHERE s.dur > 0
  )
SELECT r.id, r.ts, r.dur, r.startup_id, r.startup_type, r.process_name, r.upid, r.utid
FROM roots AS r
WHERE NOT EXISTS (
  SELECT 1 FROM roots AS o WHERE o.utid = r.utid AND o.id != r.id AND o.ts <= r.ts AND o.ts + o.dur > r.ts
)
ORDER BY r.id;

-- Slices of the main threads that ended and overlap a start; name is that of the reason, NULL for none.
CREATE PERFETTO TABLE _startup_relevant_slices AS
SELECT DISTINCT
  s.id,
  s.parent_id,
  s.depth,
  s.ts,
  s.dur,
  s.track_id,
  s.utid,
  _normalize_android_string(s.name) AS name
FROM _startup_root_slices AS r
JOIN thread_slice AS s USING (utid)
WHERE s.dur > 0 AND s.ts < r.ts + r.dur AND s.ts + s.dur > r.ts;

-- Those with a reason, each below the next one above it that has one, too.
CREATE PERFETTO TABLE _startup_normalized_slices AS
SELECT k.id, iif(k.parent_id IN (SELECT id FROM _startup_relevant_slices WHERE name IS NOT NULL), k.parent_id, NULL) AS parent_id,
  s.depth, k.name, s.ts, s.dur, s.track_id, s.utid
FROM _slice_remove_nulls_and_reparent!((SELECT id, parent_id, depth, name FROM _startup_relevant_slices), name) AS k
JOIN _startup_relevant_slices AS s USING (id);

-- The same, cut to the starts: (root_id, startup_id, slice_id, ts, dur, utid, name).
CREATE PERFETTO TABLE _startup_slices_breakdown AS
SELECT
  r.id AS root_id,
  r.startup_id,
  s.id AS slice_id,
  max(s.ts, r.ts) AS ts,
  min(s.ts + s.dur, r.ts + r.dur) - max(s.ts, r.ts) AS dur,
  s.utid,
  s.name
FROM _startup_root_slices AS r
JOIN _startup_normalized_slices AS s ON s.utid = r.utid AND s.ts < r.ts + r.dur AND s.ts + s.dur > r.ts;

-- The deepest of them at each moment: (id, root_id, startup_id, slice_id, ts, dur, name).
CREATE PERFETTO TABLE _startup_flat_slices_breakdown AS
SELECT
  row_number() OVER (ORDER BY r.id, p.ts) AS id,
  r.id AS root_id,
  r.startup_id,
  p.slice_id,
  max(p.ts, r.ts) AS ts,
  min(p.ts + p.dur, r.ts + r.dur) - max(p.ts, r.ts) AS dur,
  s.name
FROM _slice_pieces!(_startup_normalized_slices) AS p
JOIN _startup_normalized_slices AS s ON s.id = p.slice_id
JOIN _startup_root_slices AS r ON r.utid = s.utid AND p.ts < r.ts + r.dur AND p.ts + p.dur > r.ts;

-- States of the main threads that ended, cut to the starts: (id, root_id, startup_id, thread_state_id, ts, dur, state, io_wait, irq_context).
CREATE PERFETTO TABLE _startup_thread_states_breakdown AS
SELECT
  row_number() OVER (ORDER BY i.ts) AS id,
  r.id AS root_id,
  r.startup_id,
  t.id AS thread_state_id,
  i.ts,
  i.dur,
  t.state,
  t.io_wait,
  t.irq_context
FROM _interval_intersect!((
  _startup_root_slices,
  (SELECT id, ts, dur, utid FROM thread_state WHERE dur > 0)
), (utid)) AS i
JOIN _startup_root_slices AS r ON r.id = i.id_0
JOIN thread_state AS t ON t.id = i.id_1
WHERE i.dur > 0;

-- What of them stands beside the states.
CREATE PERFETTO VIEW _startup_flat_slices_of_roots AS
SELECT root_id, ts, dur, slice_id, name FROM _startup_flat_slices_breakdown;

CREATE PERFETTO VIEW _startup_thread_states_of_roots AS
SELECT root_id, ts, dur, startup_id, thread_state_id, state, io_wait, irq_context FROM _startup_thread_states_breakdown;

CREATE VIRTUAL TABLE _startup_states_and_slices
USING SPAN_LEFT_JOIN(_startup_thread_states_of_roots PARTITIONED root_id, _startup_flat_slices_of_roots PARTITIONED root_id);

-- Each moment of a start with one reason: what its main thread waited for, or else the nearest slice that stands for one, or else the
-- state of the thread. What passed before the first state of the thread is the delay of the launch.
CREATE PERFETTO TABLE android_startup_opinionated_breakdown(
  -- The start of the application: startup_id of android_startups.
  startup_id JOINID(android_startups.startup_id),
  -- Row of slice; NULL: explained by a state.
  slice_id JOINID(slice.id),
  -- Row of thread_state; NULL: the delay of the launch.
  thread_state_id JOINID(thread_state.id),
  -- When the part of the startup began.
  ts TIMESTAMP,
  -- Duration of the part of the startup in nanoseconds.
  dur DURATION,
  -- What the time went to.
  reason STRING
) AS
SELECT
  ts,
  dur,
  startup_id,
  slice_id,
  thread_state_id,
  _startup_breakdown_reason(name, state, io_wait, irq_context) AS reason
FROM _startup_states_and_slices
WHERE dur > 0
UNION ALL
SELECT r.ts, min(s.ts) - r.ts AS dur, r.startup_id, NULL AS slice_id, NULL AS thread_state_id, 'launch_delay' AS reason
FROM _startup_root_slices AS r
JOIN _startup_thread_states_breakdown AS s ON s.root_id = r.id
GROUP BY r.id
HAVING min(s.ts) > r.ts;
