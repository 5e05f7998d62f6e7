-- Java threads that wait for a lock, from the names of the slices that the runtime writes: "monitor contention with owner main (123) at void a.b() (B.java:12) waiters=0 blocking from void c.d() (D.java:3)".

INCLUDE PERFETTO MODULE android.suspend;
INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE slices.with_context;

-- The method that a text begins with: "void a.B.run(int)(B.java:12) …" gives "void a.B.run(int)".
CREATE PERFETTO FUNCTION _monitor_contention_method(
  text STRING
)
RETURNS STRING AS
SELECT str_split($text, '(', 0) || '(' || str_split($text, '(', 1);

-- Name of the thread that has the lock.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_blocking_thread(
  -- Name of the slice that waits.
  slice_name STRING
)
-- The name; NULL: the slice is none of a wait.
RETURNS STRING AS
SELECT str_split(str_split($slice_name, 'with owner ', 1), ' (', 0);

-- Its number.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_blocking_tid(
  -- Name of the slice that waits.
  slice_name STRING
)
-- The kernel's number of the thread; NULL: the slice is none of a wait.
RETURNS LONG AS
SELECT cast_int!(str_split(str_split($slice_name, ' (', 1), ')', 0));

-- The method that has the lock.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_blocking_method(
  -- Name of the slice that waits.
  slice_name STRING
)
-- The method; NULL: the slice is none of a wait.
RETURNS STRING AS
SELECT _monitor_contention_method(str_split($slice_name, ') at ', 1));

-- The same without types.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_short_blocking_method(
  -- Name of the slice that waits.
  slice_name STRING
)
-- The method; NULL: the slice is none of a wait.
RETURNS STRING AS
SELECT str_split(str_split(android_extract_android_monitor_contention_blocking_method($slice_name), ' ', 1), '(', 0);

-- The method that waits.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_blocked_method(
  -- Name of the slice that waits.
  slice_name STRING
)
-- The method; NULL: the slice is none of a wait.
RETURNS STRING AS
SELECT _monitor_contention_method(str_split($slice_name, 'blocking from ', 1));

-- The same without types.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_short_blocked_method(
  -- Name of the slice that waits.
  slice_name STRING
)
-- The method; NULL: the slice is none of a wait.
RETURNS STRING AS
SELECT str_split(str_split(android_extract_android_monitor_contention_blocked_method($slice_name), ' ', 1), '(', 0);

-- How many threads wait already.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_waiter_count(
  -- Name of the slice that waits.
  slice_name STRING
)
-- A count; NULL: the slice is none of a wait.
RETURNS LONG AS
SELECT cast_int!(str_split(str_split($slice_name, 'waiters=', 1), ' ', 0));

-- Source line of the method that has the lock.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_blocking_src(
  -- Name of the slice that waits.
  slice_name STRING
)
-- File and line; NULL: the slice is none of a wait.
RETURNS STRING AS
SELECT str_split(str_split($slice_name, ')(', 1), ')', 0);

-- Source line of the method that waits.
CREATE PERFETTO FUNCTION android_extract_android_monitor_contention_blocked_src(
  -- Name of the slice that waits.
  slice_name STRING
)
-- File and line; NULL: the slice is none of a wait.
RETURNS STRING AS
SELECT str_split(str_split($slice_name, ')(', 2), ')', 0);

-- Slices of waits with nothing inside but the runtime's own slice of the lock, if that.
CREATE PERFETTO TABLE _valid_android_monitor_contention AS
SELECT s.id
FROM slice AS s
LEFT JOIN slice AS inside ON inside.parent_id = s.id
LEFT JOIN slice AS innermost ON innermost.parent_id = inside.id
WHERE
  s.name GLOB 'monitor contention*'
  AND (inside.name IS NULL OR inside.name GLOB 'Lock contention*')
  AND innermost.name IS NULL
GROUP BY s.id;

-- Names of the locks that they wait for: (id, lock_name). Applications that tell them write "NAME_lock_acquire" just before the wait
-- and "NAME_lock_held" just after it, or after the runtime's own slice of the lock.
CREATE PERFETTO TABLE _monitor_contention_lock_names AS
WITH
  beside AS (
    SELECT
      id,
      lag(name) OVER by_track AS asked,
      lead(name) OVER by_track AS next,
      lead(name, 2) OVER by_track AS after_next
    FROM slice
    WHERE track_id IN (SELECT s.track_id FROM slice AS s JOIN _valid_android_monitor_contention USING (id))
    WINDOW by_track AS (PARTITION BY track_id ORDER BY ts, id)
  ),
  marks AS (
    SELECT id, asked, iif(next GLOB 'Lock contention*', after_next, next) AS held
    FROM beside
    JOIN _valid_android_monitor_contention USING (id)
  )
SELECT id, replace(asked, '_lock_acquire', '') AS lock_name
FROM marks
WHERE
  asked GLOB '*_lock_acquire'
  AND held GLOB '*_lock_held'
  AND replace(asked, '_lock_acquire', '') = replace(held, '_lock_held', '');

-- One row for each wait that ended and tells both methods.
CREATE PERFETTO TABLE android_monitor_contention(
  -- Method that holds the lock.
  blocking_method STRING,
  -- Method that waits for it.
  blocked_method STRING,
  -- The method that holds the lock, without types.
  short_blocking_method STRING,
  -- The method that waits, without types.
  short_blocked_method STRING,
  -- Source line that holds it.
  blocking_src STRING,
  -- Source line that waits.
  blocked_src STRING,
  -- How many waited already.
  waiter_count LONG,
  -- The thread that waits: row of thread.
  blocked_utid JOINID(thread.id),
  -- Name of the thread that waits.
  blocked_thread_name STRING,
  -- The thread that holds the lock: row of thread.
  blocking_utid JOINID(thread.id),
  -- Name of the thread that holds it.
  blocking_thread_name STRING,
  -- The kernel's number of the thread that holds it.
  blocking_tid LONG,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- The wait: row of slice.
  id LONG,
  -- When the wait began.
  ts TIMESTAMP,
  -- Duration of the wait in nanoseconds.
  dur DURATION,
  -- Length, without the time asleep.
  monotonic_dur DURATION,
  -- Row of track.
  track_id JOINID(track.id),
  -- Is the thread that waits the first of its process?
  is_blocked_thread_main LONG,
  -- The kernel's number of the thread that waits.
  blocked_thread_tid LONG,
  -- Is the thread that holds it the first of its process?
  is_blocking_thread_main LONG,
  -- The kernel's number of the thread that holds it.
  blocking_thread_tid LONG,
  -- The call that was being answered: row of slice; NULL: none.
  binder_reply_id LONG,
  -- Start of that answer.
  binder_reply_ts TIMESTAMP,
  -- The kernel's number of its thread.
  binder_reply_tid LONG,
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the lock; NULL: the application does not tell it.
  lock_name STRING
) AS
SELECT
  android_extract_android_monitor_contention_blocking_method(s.name) AS blocking_method,
  android_extract_android_monitor_contention_blocked_method(s.name) AS blocked_method,
  android_extract_android_monitor_contention_short_blocking_method(s.name) AS short_blocking_method,
  android_extract_android_monitor_contention_short_blocked_method(s.name) AS short_blocked_method,
  android_extract_android_monitor_contention_blocking_src(s.name) AS blocking_src,
  android_extract_android_monitor_contention_blocked_src(s.name) AS blocked_src,
  android_extract_android_monitor_contention_waiter_count(s.name) AS waiter_count,
  s.utid AS blocked_utid,
  s.thread_name AS blocked_thread_name,
  o.utid AS blocking_utid,
  android_extract_android_monitor_contention_blocking_thread(s.name) AS blocking_thread_name,
  android_extract_android_monitor_contention_blocking_tid(s.name) AS blocking_tid,
  s.upid,
  s.process_name,
  s.id,
  s.ts,
  s.dur,
  _extract_duration_without_suspend(s.ts, s.dur) AS monotonic_dur,
  s.track_id,
  s.is_main_thread AS is_blocked_thread_main,
  s.tid AS blocked_thread_tid,
  o.is_main_thread AS is_blocking_thread_main,
  o.tid AS blocking_thread_tid,
  b.id AS binder_reply_id,
  b.ts AS binder_reply_ts,
  iif(b.id IS NULL, NULL, s.tid) AS binder_reply_tid,
  s.pid,
  l.lock_name
FROM thread_slice AS s
JOIN _valid_android_monitor_contention AS v USING (id)
LEFT JOIN _monitor_contention_lock_names AS l USING (id)
LEFT JOIN thread AS o
  ON o.utid = (
    SELECT min(t.utid)
    FROM thread AS t
    WHERE t.upid = s.upid AND t.tid = android_extract_android_monitor_contention_blocking_tid(s.name)
  )
LEFT JOIN slice AS b ON b.id = (SELECT a.id FROM ancestor_slice(s.id) AS a WHERE a.name = 'binder reply' LIMIT 1)
WHERE
  s.dur != -1
  AND android_extract_android_monitor_contention_short_blocking_method(s.name) IS NOT NULL
  AND android_extract_android_monitor_contention_short_blocked_method(s.name) IS NOT NULL
ORDER BY s.id;

-- Waits, and those that their owners were in: one row for each of these.
CREATE PERFETTO TABLE _children AS
SELECT i.id_0 AS parent_id, i.id_1 AS child_id
FROM _interval_intersect!((
  (SELECT id, ts, dur + 1 AS dur, blocked_utid AS utid FROM android_monitor_contention WHERE dur >= 0),
  (SELECT id, ts, 0 AS dur, blocking_utid AS utid FROM android_monitor_contention WHERE blocking_utid IS NOT NULL)
), (utid)) AS i;

-- Of all that wait for one in a wait, the one that began first: (parent_id, child_id). A wait has any number of owners in waits
-- before it, and of waits behind it; with all pairs of them the chain would explode.
CREATE PERFETTO TABLE _child_of AS
SELECT parent_id, min(child_id) AS child_id FROM _children GROUP BY parent_id;

-- The same, with the wait that the owner itself is in (parent), and the one that waits for this one (child).
CREATE PERFETTO TABLE android_monitor_contention_chain(
  -- The wait that the holder of this lock is in; NULL: none.
  parent_id LONG,
  -- Method that holds the lock.
  blocking_method STRING,
  -- Method that waits for it.
  blocked_method STRING,
  -- The method that holds the lock, without types.
  short_blocking_method STRING,
  -- The method that waits, without types.
  short_blocked_method STRING,
  -- Source line that holds it.
  blocking_src STRING,
  -- Source line that waits.
  blocked_src STRING,
  -- How many waited already.
  waiter_count LONG,
  -- The thread that waits: row of thread.
  blocked_utid JOINID(thread.id),
  -- Name of the thread that waits.
  blocked_thread_name STRING,
  -- The thread that holds the lock: row of thread.
  blocking_utid JOINID(thread.id),
  -- Name of the thread that holds it.
  blocking_thread_name STRING,
  -- The kernel's number of the thread that holds it.
  blocking_tid LONG,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- The wait: row of slice.
  id LONG,
  -- When the wait began.
  ts TIMESTAMP,
  -- Duration of the wait in nanoseconds.
  dur DURATION,
  -- Length, without the time asleep.
  monotonic_dur DURATION,
  -- Row of track.
  track_id JOINID(track.id),
  -- Is the thread that waits the first of its process?
  is_blocked_thread_main LONG,
  -- The kernel's number of the thread that waits.
  blocked_thread_tid LONG,
  -- Is the thread that holds it the first of its process?
  is_blocking_thread_main LONG,
  -- The kernel's number of the thread that holds it.
  blocking_thread_tid LONG,
  -- The call that was being answered: row of slice; NULL: none.
  binder_reply_id LONG,
  -- Start of that answer.
  binder_reply_ts TIMESTAMP,
  -- The kernel's number of its thread.
  binder_reply_tid LONG,
  -- The kernel's number of the process.
  pid LONG,
  -- A wait for a lock that this waiting thread holds; NULL: none.
  child_id LONG,
  -- Name of the lock; NULL: the application does not tell it.
  lock_name STRING
) AS
SELECT
  p.parent_id,
  m.blocking_method, m.blocked_method, m.short_blocking_method, m.short_blocked_method, m.blocking_src, m.blocked_src,
  m.waiter_count, m.blocked_utid, m.blocked_thread_name, m.blocking_utid, m.blocking_thread_name, m.blocking_tid, m.upid,
  m.process_name, m.id, m.ts, m.dur, m.monotonic_dur, m.track_id, m.is_blocked_thread_main, m.blocked_thread_tid,
  m.is_blocking_thread_main, m.blocking_thread_tid, m.binder_reply_id, m.binder_reply_ts, m.binder_reply_tid, m.pid,
  c.child_id,
  m.lock_name
FROM android_monitor_contention AS m
LEFT JOIN _children AS p ON p.child_id = m.id
LEFT JOIN _child_of AS c ON c.parent_id = m.id;

-- The first of those who wait for a method to give up its lock, up to when one of them gets it: another one may be quicker.
CREATE PERFETTO VIEW _first_blocked_contention AS
SELECT w.id, w.blocking_utid, w.ts, min(o.ts + o.dur) - w.ts AS dur
FROM android_monitor_contention AS w
JOIN android_monitor_contention AS o
  ON o.blocking_utid = w.blocking_utid AND o.blocking_method = w.blocking_method AND o.ts BETWEEN w.ts AND w.ts + w.dur
WHERE w.waiter_count = 0
GROUP BY w.id;

-- States of the threads that they wait for.
CREATE PERFETTO VIEW _blocking_thread_state AS
SELECT id, utid AS blocking_utid, ts, dur, state, blocked_function
FROM thread_state
WHERE dur > 0 AND utid IN (SELECT blocking_utid FROM android_monitor_contention);

-- What the owner did while the first one waited for it, and had the lock.
CREATE PERFETTO TABLE android_monitor_contention_chain_thread_state(
  -- The wait: row of slice.
  id LONG,
  -- When the state of the owner began.
  ts TIMESTAMP,
  -- Duration of the state of the owner in nanoseconds.
  dur DURATION,
  -- The thread that holds the lock: row of thread.
  blocking_utid JOINID(thread.id),
  -- Kernel function that the thread waited in.
  blocked_function STRING,
  -- State of the thread that holds the lock.
  state STRING
) AS
SELECT i.id_0 AS id, i.ts, i.dur, i.blocking_utid, t.blocked_function, t.state
FROM _interval_intersect!((
  (SELECT id, ts, dur, blocking_utid FROM _first_blocked_contention WHERE blocking_utid IS NOT NULL),
  (SELECT id, ts, dur, blocking_utid FROM _blocking_thread_state)
), (blocking_utid)) AS i
JOIN thread_state AS t ON t.id = i.id_1
WHERE i.dur > 0;

-- The same added up by state.
CREATE PERFETTO VIEW android_monitor_contention_chain_thread_state_by_txn(
  -- The wait: row of slice.
  id LONG,
  -- State of the thread.
  thread_state STRING,
  -- Time in that state.
  thread_state_dur DURATION,
  -- How many spans in that state.
  thread_state_count LONG
) AS
SELECT id, state AS thread_state, sum(dur) AS thread_state_dur, count() AS thread_state_count
FROM android_monitor_contention_chain_thread_state
GROUP BY id, thread_state;

-- The same added up by kernel function.
CREATE PERFETTO VIEW android_monitor_contention_chain_blocked_functions_by_txn(
  -- The wait: row of slice.
  id LONG,
  -- Kernel function that the thread waited in.
  blocked_function STRING,
  -- Time waited in it.
  blocked_function_dur DURATION,
  -- How often it waited in it.
  blocked_function_count LONG
) AS
SELECT id, blocked_function, sum(dur) AS blocked_function_dur, count() AS blocked_function_count
FROM android_monitor_contention_chain_thread_state
WHERE blocked_function IS NOT NULL
GROUP BY id, blocked_function;

-- Who waited for whom in a process, as a profile of the time waited: below each thread and method that waits the one that has
-- the lock, and below that what it waits for itself. Threads that serve calls count as one.
CREATE PERFETTO FUNCTION android_monitor_contention_graph(
  -- The process that is looked at: row of process.
  upid JOINID(process.id)
)
RETURNS TABLE(
  -- The graph as a profile in the format of pprof.
  pprof BYTES
) AS
WITH RECURSIVE
  waits AS (
    SELECT
      id,
      parent_id,
      dur,
      cat_stacks(
        iif(blocked_thread_name GLOB 'binder:*', 'binder', blocked_thread_name) || ':' || short_blocked_method,
        iif(blocking_thread_name GLOB 'binder:*', 'binder', blocking_thread_name) || ':' || short_blocking_method
      ) AS stack
    FROM android_monitor_contention_chain
    WHERE upid = $upid
    GROUP BY id, parent_id
  ),
  -- from the waits whose owners wait for nobody to those that wait for these
  chain(id, dur, stack) AS (
    SELECT id, dur, stack FROM waits WHERE parent_id IS NULL
    UNION ALL
    SELECT w.id, w.dur, cat_stacks(w.stack, c.stack)
    FROM chain AS c
    JOIN waits AS w ON w.parent_id = c.id
  )
SELECT experimental_profile(stack, 'duration', 'ns', dur) AS pprof
FROM chain;
