-- Samples of linux.perf.

-- Stacks that linux.perf sampled.
CREATE PERFETTO VIEW perf_sample(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The thread.
  utid JOINID(thread.id),
  -- Number of the CPU on its machine.
  cpu LONG,
  -- user, kernel, hypervisor, guest_user, guest_kernel or unknown.
  cpu_mode STRING,
  -- The innermost frame of its call stack; NULL: none.
  callsite_id JOINID(stack_profile_callsite.id),
  -- Why the stack is not whole; NULL: it is.
  unwind_error STRING,
  -- Row of perf_session.
  perf_session_id JOINID(perf_session.id)
)
AS
SELECT s.id, s.ts, t.utid, c.cpu, coalesce(x.cpu_mode, 'unknown') AS cpu_mode, s.callsite_id, s.unwind_error,
  s.session_id AS perf_session_id
FROM __intrinsic_profiler_sample AS s
LEFT JOIN __intrinsic_profiler_task_context AS t ON t.id = s.task_context_id
LEFT JOIN __intrinsic_profiler_execution_context AS x ON x.id = s.execution_context_id
LEFT JOIN __intrinsic_cpu AS c ON c.id = x.ucpu
WHERE s.source = 'linux.perf';
