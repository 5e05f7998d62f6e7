-- Why threads wait: the time that each was blocked, with its own call stack, and with the stack of the thread that woke it.
--
-- Needs samples of linux.perf with the tracepoints sched/sched_switch and sched/sched_waking as timebases, and the same
-- events from linux.ftrace: tracebox profile --off-cpu records both. Locks are told apart where syscalls/sys_enter_futex is
-- there as well (or raw_syscalls/sys_enter), those of the kernel where lock/contention_begin is.

INCLUDE PERFETTO MODULE callstacks.stack_profile;

-- Samples of a tracepoint, by its name with a slash or a colon.
CREATE PERFETTO MACRO _off_cpu_samples(
  -- The name with a slash.
  slash Expr,
  -- The name with a colon.
  colon Expr
)
RETURNS TableOrSubquery AS
(
  SELECT s.id, s.ts, s.utid, s.callsite_id
  FROM perf_sample AS s
  WHERE s.callsite_id IS NOT NULL AND s.perf_session_id IN (
    SELECT t.perf_session_id FROM perf_counter_track AS t WHERE t.is_timebase AND t.name IN ($slash, $colon)
  )
);

-- Samples of where threads stop.
CREATE PERFETTO TABLE _off_cpu_switches AS
SELECT * FROM _off_cpu_samples!('sched/sched_switch', 'sched:sched_switch');

-- Samples of where threads wake others.
CREATE PERFETTO TABLE _off_cpu_wakings AS
SELECT * FROM _off_cpu_samples!('sched/sched_waking', 'sched:sched_waking');

-- For each event (id, utid, ts) the call stack of the thread's sample that is nearest in time, up to a millisecond away:
-- a tracepoint is told twice, to ftrace and to perf, one a moment after the other.
CREATE PERFETTO MACRO _off_cpu_nearest(
  -- Events: id, utid, ts.
  events TableOrSubquery,
  -- Samples: utid, ts, callsite_id.
  samples TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _oc_all AS (
      SELECT utid, ts, id, NULL AS callsite_id FROM $events
      UNION ALL
      SELECT utid, ts, NULL AS id, callsite_id FROM $samples
    ),
    _oc_around AS (
      SELECT
        id, utid, ts, callsite_id,
        max(iif(callsite_id IS NULL, NULL, ts)) OVER (
          PARTITION BY utid ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS before,
        min(iif(callsite_id IS NULL, NULL, ts)) OVER (
          PARTITION BY utid ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS after
      FROM _oc_all
    ),
    _oc_place AS (
      SELECT
        id, utid, ts,
        iif(after IS NULL OR ts - before <= after - ts, before, after) AS sample_ts
      FROM _oc_around
      WHERE id IS NOT NULL
    )
  SELECT p.id, min(s.callsite_id) AS callsite_id
  FROM _oc_place AS p
  JOIN $samples AS s ON s.utid = p.utid AND s.ts = p.sample_ts
  WHERE abs(p.ts - p.sample_ts) <= 1000000
  GROUP BY p.id
);

-- What functions of the kernel say about the wait that they are part of. The first row that fits counts.
CREATE PERFETTO TABLE _off_cpu_kinds AS
WITH kinds(rank, pattern, kind) AS (
  VALUES
    (1, '*futex_*wait*', 'futex'),
    (2, '*pipe_read*', 'pipe'), (2, '*pipe_write*', 'pipe'),
    (3, '*nanosleep*', 'sleep'),
    (4, '*epoll_wait*', 'epoll'), (4, 'ep_poll*', 'epoll'),
    (5, '*do_sys_poll*', 'poll'), (5, 'do_select*', 'poll'), (5, 'do_poll*', 'poll'),
    (6, 'do_wait*', 'child'), (6, 'kernel_wait4*', 'child'),
    (7, '*recvmsg*', 'socket'), (7, '*sendmsg*', 'socket'), (7, '*_accept*', 'socket'), (7, '*_connect*', 'socket'),
    (7, 'unix_stream_*', 'socket'), (7, 'sk_wait_*', 'socket'),
    (8, 'io_schedule*', 'io'), (8, '*wait_on_page*', 'io'), (8, 'folio_wait_*', 'io'), (8, '*wait_on_buffer*', 'io'),
    (9, '*mutex_lock*', 'kernel lock'), (9, 'rwsem_*', 'kernel lock'), (9, '__down*', 'kernel lock'),
    (10, '*sigtimedwait*', 'signal'), (10, '*sigsuspend*', 'signal'), (10, '*_pause*', 'signal'),
    (11, 'worker_thread*', 'idle worker'), (11, 'kthread*', 'kernel thread'), (12, 'smpboot_thread*', 'kernel thread')
)
SELECT * FROM kinds;

-- Callsites of waits with what the kernel's frames tell: the innermost function that is not the scheduler's, and what kind
-- of wait that is.
CREATE PERFETTO TABLE _off_cpu_waits AS
WITH RECURSIVE
  leaves AS (
    SELECT DISTINCT callsite_id AS leaf FROM _off_cpu_switches
  ),
  walk(leaf, at, depth) AS (
    SELECT leaf, leaf, 0 FROM leaves
    UNION ALL
    SELECT w.leaf, c.parent_id, w.depth + 1
    FROM walk AS w
    JOIN stack_profile_callsite AS c ON c.id = w.at
    WHERE c.parent_id IS NOT NULL AND w.depth < 200
  ),
  kernel AS (
    SELECT w.leaf, w.depth, f.name
    FROM walk AS w
    JOIN stack_profile_callsite AS c ON c.id = w.at
    JOIN stack_profile_frame AS f ON f.id = c.frame_id
    JOIN stack_profile_mapping AS m ON m.id = f.mapping
    WHERE m.name IN ('/kernel', '[kernel.kallsyms]') AND f.name != ''
  ),
  first AS (
    SELECT leaf, name, min(depth) AS depth
    FROM kernel
    WHERE name NOT GLOB '*schedule*' AND name NOT GLOB '__traceiter_*' AND name NOT GLOB 'perf_*'
    GROUP BY leaf
  ),
  named AS (
    SELECT DISTINCT name FROM kernel
  ),
  kind_of AS (
    SELECT n.name, k.kind, min(k.rank) AS rank
    FROM named AS n
    JOIN _off_cpu_kinds AS k ON n.name GLOB k.pattern
    GROUP BY n.name
  ),
  kinds AS (
    SELECT k.leaf, o.kind, min(o.rank) AS rank FROM kernel AS k JOIN kind_of AS o USING (name) GROUP BY k.leaf
  )
SELECT l.leaf AS callsite_id, f.name AS wait_function, k.kind AS wait_kind
FROM leaves AS l
LEFT JOIN first AS f USING (leaf)
LEFT JOIN kinds AS k USING (leaf);

-- What the wait channel alone tells about waits, where the kernel gives one (sched_blocked_reason).
CREATE PERFETTO TABLE _off_cpu_channels AS
WITH
  channels AS (
    SELECT DISTINCT blocked_function AS name FROM thread_state WHERE blocked_function IS NOT NULL
  )
SELECT c.name, k.kind, min(k.rank) AS rank
FROM channels AS c
JOIN _off_cpu_kinds AS k ON c.name GLOB k.pattern
GROUP BY c.name;

-- Stretches in which a thread was blocked, and what came next.
CREATE PERFETTO TABLE _off_cpu_blocked AS
WITH
  states AS (
    SELECT
      *,
      lead(state) OVER w AS next_state,
      lead(ts) OVER w AS next_ts,
      lead(dur) OVER w AS next_dur,
      lead(waker_utid) OVER w AS next_waker
    FROM thread_state
    WINDOW w AS (PARTITION BY utid ORDER BY ts)
  )
SELECT * FROM states WHERE state NOT IN ('Running', 'R', 'R+', 'Created', 'X', 'Z', 'x');

-- Where they stopped.
CREATE PERFETTO TABLE _off_cpu_stopped AS
SELECT * FROM _off_cpu_nearest!(_off_cpu_blocked, _off_cpu_switches);

-- Where others woke them.
CREATE PERFETTO TABLE _off_cpu_woken AS
SELECT *
FROM _off_cpu_nearest!(
  (SELECT id, next_waker AS utid, next_ts AS ts FROM _off_cpu_blocked WHERE next_waker IS NOT NULL),
  _off_cpu_wakings
);

CREATE PERFETTO TABLE _off_cpu_stretches AS
SELECT
  b.id,
  b.ts,
  b.dur,
  b.utid,
  b.state,
  s.callsite_id,
  coalesce(w.wait_kind, c.kind) AS wait_kind,
  coalesce(w.wait_function, b.blocked_function) AS wait_function,
  b.next_waker AS waker_utid,
  k.callsite_id AS waker_callsite_id,
  iif(b.next_state IN ('R', 'R+'), b.next_dur, NULL) AS runnable_dur
FROM _off_cpu_blocked AS b
LEFT JOIN _off_cpu_stopped AS s ON s.id = b.id
LEFT JOIN _off_cpu_waits AS w ON w.callsite_id = s.callsite_id
LEFT JOIN _off_cpu_channels AS c ON c.name = b.blocked_function
LEFT JOIN _off_cpu_woken AS k ON k.id = b.id;

-- Where threads begin to wait for locks, in order of time. Calls of futex() are events of their own, or the slices that
-- raw_syscalls make; for the kernel's locks there is lock/contention_begin (flag 1: it spins, and stays on its CPU).
CREATE PERFETTO TABLE _off_cpu_lock_calls AS
WITH
  calls AS (
    SELECT 'futex' AS kind, utid, ts, arg_set_id FROM ftrace_event WHERE name = 'sys_enter_futex'
    UNION ALL
    SELECT 'futex', t.utid, s.ts, s.arg_set_id
    FROM slice AS s
    JOIN thread_track AS t ON t.id = s.track_id
    WHERE s.name = 'sys_futex'
    UNION ALL
    SELECT 'kernel lock', utid, ts, arg_set_id
    FROM ftrace_event
    WHERE name = 'contention_begin' AND coalesce(extract_arg(arg_set_id, 'flags'), 0) & 1 = 0
  )
SELECT row_number() OVER (ORDER BY ts) AS call, kind, utid, ts, arg_set_id FROM calls;

-- For each stretch in futex(), or for a lock of the kernel, the address that the thread's last call named.
CREATE PERFETTO TABLE _off_cpu_lock_addresses AS
WITH
  all_of_them AS (
    SELECT kind, utid, ts, call, NULL AS id FROM _off_cpu_lock_calls
    UNION ALL
    SELECT wait_kind AS kind, utid, ts, NULL AS call, id FROM _off_cpu_stretches WHERE wait_kind IN ('futex', 'kernel lock')
  ),
  last_calls AS (
    SELECT
      id,
      max(call) OVER (
        PARTITION BY utid, kind ORDER BY ts, id IS NOT NULL ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS call
    FROM all_of_them
  )
SELECT
  l.id,
  coalesce(
    extract_arg(c.arg_set_id, 'uaddr'), extract_arg(c.arg_set_id, 'lock_addr'), extract_arg(c.arg_set_id, 'args[0]')
  ) AS lock_address
FROM last_calls AS l
JOIN _off_cpu_lock_calls AS c USING (call)
WHERE l.id IS NOT NULL;

-- Stretches of time in which a thread was blocked, and why, as far as samples tell.
CREATE PERFETTO TABLE linux_off_cpu(
  -- Row of thread_state: the stretch.
  thread_state_id JOINID(thread_state.id),
  -- When the thread stopped.
  ts TIMESTAMP,
  -- Until somebody woke it; -1 when it was still blocked at the end.
  dur DURATION,
  -- The thread.
  utid JOINID(thread.id),
  -- Its process.
  upid JOINID(process.id),
  -- Name of the thread.
  thread_name STRING,
  -- Name of the process.
  process_name STRING,
  -- Its state: S (can be interrupted), D (cannot), I (idle), and others of thread_state.
  state STRING,
  -- Where it stopped: its own call stack; NULL without a sample.
  callsite_id JOINID(stack_profile_callsite.id),
  -- What it waited for, by the kernel's functions: futex, pipe, sleep, epoll, poll, child, socket, io, kernel lock, signal;
  -- NULL when they do not tell.
  wait_kind STRING,
  -- The innermost function of the kernel that is not the scheduler's, or the wait channel that the kernel gave.
  wait_function STRING,
  -- The thread that woke it; NULL when nobody did.
  waker_utid JOINID(thread.id),
  -- Where that one did it; NULL without a sample.
  waker_callsite_id JOINID(stack_profile_callsite.id),
  -- How long it was ready to run before it ran; NULL when it was not woken.
  runnable_dur DURATION,
  -- Address of the lock or condition that it waited for: of a futex in the memory of its process; for a lock of the kernel
  -- the number that tracebox gives each address of the kernel in a recording. NULL when it was neither or was not recorded.
  lock_address LONG
) AS
SELECT
  s.id AS thread_state_id,
  s.ts,
  s.dur,
  s.utid,
  t.upid,
  t.name AS thread_name,
  p.name AS process_name,
  s.state,
  s.callsite_id,
  s.wait_kind,
  s.wait_function,
  s.waker_utid,
  s.waker_callsite_id,
  s.runnable_dur,
  f.lock_address
FROM _off_cpu_stretches AS s
JOIN thread AS t USING (utid)
LEFT JOIN process AS p USING (upid)
LEFT JOIN _off_cpu_lock_addresses AS f ON f.id = s.id
ORDER BY s.ts;

-- What each thread waited for, and how long.
CREATE PERFETTO TABLE linux_off_cpu_by_wait(
  -- The thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Name of the process.
  process_name STRING,
  -- What it waited for; see linux_off_cpu.
  wait_kind STRING,
  -- Function of the kernel that waited.
  wait_function STRING,
  -- How often.
  wait_count LONG,
  -- How long in all; waits that did not end are not in it.
  dur DURATION,
  -- The longest of them.
  max_dur DURATION
) AS
SELECT
  utid, min(thread_name) AS thread_name, min(process_name) AS process_name, wait_kind, wait_function,
  count() AS wait_count, sum(max(dur, 0)) AS dur, max(dur) AS max_dur
FROM linux_off_cpu
GROUP BY utid, wait_kind, wait_function
ORDER BY dur DESC;

-- Waits for locks; those whose address was not recorded have the function that waits for them.
CREATE PERFETTO TABLE _off_cpu_lock_waits AS
SELECT
  upid, process_name, utid, wait_kind, lock_address, iif(lock_address IS NULL, wait_function, NULL) AS wait_function,
  max(dur, 0) AS dur, callsite_id, waker_utid
FROM linux_off_cpu
WHERE wait_kind IN ('futex', 'kernel lock');

-- For which locks threads were blocked, and how long.
CREATE PERFETTO TABLE linux_off_cpu_by_lock(
  -- The process whose threads waited.
  upid JOINID(process.id),
  -- Its name.
  process_name STRING,
  -- futex: a lock, a condition or the end of a thread; kernel lock: one of the kernel's own.
  wait_kind STRING,
  -- Address of the futex in the memory of the process, or number of the lock of the kernel; NULL when it is not known.
  lock_address LONG,
  -- Function of the kernel that waited, when there is no address.
  wait_function STRING,
  -- How often.
  wait_count LONG,
  -- How many threads.
  thread_count LONG,
  -- How long in all; waits that did not end are not in it.
  dur DURATION,
  -- The longest of them.
  max_dur DURATION,
  -- The call stack in which most of that time was spent; NULL without samples.
  callsite_id JOINID(stack_profile_callsite.id),
  -- The thread that ended most of that time: for a lock, the one that held it.
  waker_utid JOINID(thread.id)
) AS
WITH
  by_stack AS (
    SELECT upid, wait_kind, lock_address, wait_function, callsite_id, sum(dur) AS dur
    FROM _off_cpu_lock_waits
    GROUP BY upid, wait_kind, lock_address, wait_function, callsite_id
  ),
  stacks AS (
    SELECT upid, wait_kind, lock_address, wait_function, callsite_id, max(dur) AS dur
    FROM by_stack
    GROUP BY upid, wait_kind, lock_address, wait_function
  ),
  by_waker AS (
    SELECT upid, wait_kind, lock_address, wait_function, waker_utid, sum(dur) AS dur
    FROM _off_cpu_lock_waits
    WHERE waker_utid IS NOT NULL
    GROUP BY upid, wait_kind, lock_address, wait_function, waker_utid
  ),
  wakers AS (
    SELECT upid, wait_kind, lock_address, wait_function, waker_utid, max(dur) AS dur
    FROM by_waker
    GROUP BY upid, wait_kind, lock_address, wait_function
  ),
  locks AS (
    SELECT
      upid, min(process_name) AS process_name, wait_kind, lock_address, wait_function, count() AS wait_count,
      count(DISTINCT utid) AS thread_count, sum(dur) AS dur, max(dur) AS max_dur
    FROM _off_cpu_lock_waits
    GROUP BY upid, wait_kind, lock_address, wait_function
  )
SELECT l.*, s.callsite_id, w.waker_utid
FROM locks AS l
JOIN stacks AS s
  ON s.upid IS l.upid AND s.wait_kind = l.wait_kind AND s.lock_address IS l.lock_address
  AND s.wait_function IS l.wait_function
LEFT JOIN wakers AS w
  ON w.upid IS l.upid AND w.wait_kind = l.wait_kind AND w.lock_address IS l.lock_address
  AND w.wait_function IS l.wait_function
ORDER BY l.dur DESC;

CREATE PERFETTO TABLE _off_cpu_stacks AS
SELECT *
FROM _callstacks_for_callsites_weighted!((SELECT callsite_id, dur AS value FROM linux_off_cpu WHERE dur > 0));

-- Call tree of the time blocked, by the stacks of those who waited: a flame graph.
CREATE PERFETTO TABLE linux_off_cpu_tree(
  -- Id of the node.
  id LONG,
  -- The node that called it.
  parent_id LONG,
  -- Name of the function.
  name STRING,
  -- File that it lies in.
  mapping_name STRING,
  -- Time blocked right there.
  self_dur DURATION,
  -- Time blocked there and in what it called.
  cumulative_dur DURATION
) AS
SELECT r.id, r.parent_id, r.name, r.mapping_name, r.self_value AS self_dur, a.cumulative_count AS cumulative_dur
FROM _callstacks_self_to_cumulative!((SELECT id, parent_id, self_value AS self_count FROM _off_cpu_stacks)) AS a
JOIN _off_cpu_stacks AS r USING (id)
ORDER BY r.id;

CREATE PERFETTO TABLE _off_cpu_waker_stacks AS
SELECT *
FROM _callstacks_for_callsites_weighted!(
  (SELECT waker_callsite_id AS callsite_id, dur AS value FROM linux_off_cpu WHERE dur > 0)
);

-- Call tree of the time blocked, by the stacks of those who ended the waits.
CREATE PERFETTO TABLE linux_off_cpu_waker_tree(
  -- Id of the node.
  id LONG,
  -- The node that called it.
  parent_id LONG,
  -- Name of the function.
  name STRING,
  -- File that it lies in.
  mapping_name STRING,
  -- Time of others that ended right there.
  self_dur DURATION,
  -- Time of others that ended there and in what it called.
  cumulative_dur DURATION
) AS
SELECT r.id, r.parent_id, r.name, r.mapping_name, r.self_value AS self_dur, a.cumulative_count AS cumulative_dur
FROM _callstacks_self_to_cumulative!((SELECT id, parent_id, self_value AS self_count FROM _off_cpu_waker_stacks)) AS a
JOIN _off_cpu_waker_stacks AS r USING (id)
ORDER BY r.id;
