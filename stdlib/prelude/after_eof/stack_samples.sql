-- Stack samples of any profiler: those with a call stack, and what they refer to.

-- Recordings of stack samples.
CREATE PERFETTO TABLE stack_sample_session(
  -- Number of the row, from 0.
  id ID,
  -- Which profiler, for instance linux.perf.
  source STRING,
  -- Unit of what is counted between samples.
  timebase_unit STRING,
  -- Command line.
  cmdline STRING
)
AS
SELECT id, source, timebase_unit, cmdline
FROM __intrinsic_profiler_session
WHERE id IN (SELECT session_id FROM __intrinsic_profiler_sample WHERE callsite_id IS NOT NULL);

-- Asynchronous tasks that stack samples were taken in.
CREATE PERFETTO TABLE stack_sample_async_context(
  -- Number of the row, from 0.
  id ID,
  -- Its name.
  name STRING,
  -- What makes the work asynchronous.
  kind STRING,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(stack_sample_async_context.id)
)
AS
WITH RECURSIVE used(id) AS (
  SELECT t.async_context_id
  FROM __intrinsic_profiler_sample AS s
  JOIN __intrinsic_profiler_task_context AS t ON t.id = s.task_context_id
  WHERE s.callsite_id IS NOT NULL AND t.async_context_id IS NOT NULL
  UNION
  SELECT c.parent_id
  FROM used
  JOIN __intrinsic_profiler_async_context AS c ON c.id = used.id
  WHERE c.parent_id IS NOT NULL
)
SELECT id, name, kind, parent_id
FROM __intrinsic_profiler_async_context
WHERE id IN (SELECT id FROM used);

-- Threads or tasks that stack samples were taken in.
CREATE PERFETTO TABLE stack_sample_task_context(
  -- Number of the row, from 0.
  id ID,
  -- The process.
  upid JOINID(process.id),
  -- The thread.
  utid JOINID(thread.id),
  -- The asynchronous task, when it is known.
  async_context_id JOINID(stack_sample_async_context.id)
)
AS
SELECT id, upid, utid, async_context_id
FROM __intrinsic_profiler_task_context
WHERE id IN (SELECT task_context_id FROM __intrinsic_profiler_sample WHERE callsite_id IS NOT NULL);

-- CPUs and modes that stack samples were taken in.
CREATE PERFETTO TABLE stack_sample_execution_context(
  -- Number of the row, from 0.
  id ID,
  -- Row of cpu: a CPU of one machine.
  ucpu JOINID(cpu.id),
  -- user, kernel, hypervisor, guest_user, guest_kernel or unknown.
  cpu_mode STRING
)
AS
SELECT id, ucpu, cpu_mode
FROM __intrinsic_profiler_execution_context
WHERE id IN (SELECT execution_context_id FROM __intrinsic_profiler_sample WHERE callsite_id IS NOT NULL);

-- Stacks that a profiler sampled, whichever it was.
CREATE PERFETTO VIEW stack_sample(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Which profiler, for instance linux.perf.
  source STRING,
  -- What was running; NULL: not known.
  task_context_id JOINID(stack_sample_task_context.id),
  -- Where it was running; NULL: not known.
  execution_context_id JOINID(stack_sample_execution_context.id),
  -- The innermost frame of its call stack.
  callsite_id JOINID(stack_profile_callsite.id),
  -- The recording session it belongs to.
  session_id JOINID(stack_sample_session.id)
)
AS
SELECT id, ts, source, task_context_id, execution_context_id, callsite_id, session_id
FROM __intrinsic_profiler_sample
WHERE callsite_id IS NOT NULL;

-- Counters that were read with each stack sample.
CREATE PERFETTO TABLE stack_sample_counter_track(
  -- Row of track.
  id ID(track.id),
  -- Its name.
  name STRING,
  -- Kind of the track.
  type STRING,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(track.id),
  -- What the recorder said of it: rows of args; NULL: nothing.
  source_arg_set_id ARGSETID,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- Unit of the values, as the recorder gives it.
  unit STRING,
  -- What the recorder says of it.
  description STRING,
  -- The recording session it belongs to.
  session_id JOINID(stack_sample_session.id),
  -- Number of the CPU; the same as ucpu, so that it is unique over all machines.
  cpu LONG,
  -- Whether samples are taken each time this counter has moved on so far.
  is_timebase BOOL
)
AS
SELECT id, name, type, parent_id, source_arg_set_id, machine_id, counter_unit AS unit,
  extract_arg(source_arg_set_id, 'description') AS description,
  coalesce(extract_arg(dimension_arg_set_id, 'session_id'), extract_arg(dimension_arg_set_id, 'perf_session_id'))
    AS session_id,
  extract_arg(dimension_arg_set_id, 'cpu') AS cpu, extract_arg(source_arg_set_id, 'is_timebase') AS is_timebase
FROM __intrinsic_track
WHERE id IN (
  SELECT c.track_id
  FROM __intrinsic_profiler_sample AS s
  JOIN __intrinsic_profiler_counter_set AS k ON k.counter_set_id = s.counter_set_id
  JOIN __intrinsic_counter AS c ON c.id = k.counter_id
  WHERE s.callsite_id IS NOT NULL
);

-- What the counters showed at each stack sample.
CREATE PERFETTO VIEW stack_sample_counter(
  -- Row of counter.
  id ID(counter.id),
  -- The sample.
  stack_sample_id JOINID(stack_sample.id),
  -- The track it is drawn on.
  track_id JOINID(stack_sample_counter_track.id),
  -- The value.
  value DOUBLE
)
AS
SELECT c.id, s.id AS stack_sample_id, c.track_id, c.value
FROM __intrinsic_profiler_sample AS s
JOIN __intrinsic_profiler_counter_set AS k ON k.counter_set_id = s.counter_set_id
JOIN __intrinsic_counter AS c ON c.id = k.counter_id
WHERE s.callsite_id IS NOT NULL;
