-- Samples of linux.perf.

CREATE VIEW perf_sample AS
SELECT s.id, s.ts, t.utid, c.cpu, coalesce(x.cpu_mode, 'unknown') AS cpu_mode, s.callsite_id, s.unwind_error,
  s.session_id AS perf_session_id
FROM __intrinsic_profiler_sample AS s
LEFT JOIN __intrinsic_profiler_task_context AS t ON t.id = s.task_context_id
LEFT JOIN __intrinsic_profiler_execution_context AS x ON x.id = s.execution_context_id
LEFT JOIN __intrinsic_cpu AS c ON c.id = x.ucpu
WHERE s.source = 'linux.perf';
