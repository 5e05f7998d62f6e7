-- Samples of all CPU profilers together, and their call tree.

INCLUDE PERFETTO MODULE callstacks.stack_profile;

-- All samples of call stacks that CPU profilers took; those taken by another count than time or cycles (page faults,
-- bytes, …) do not tell where the time went.
CREATE PERFETTO TABLE cpu_profiling_samples(
  -- Number of the sample.
  id LONG,
  -- Time of the sample.
  ts TIMESTAMP,
  -- Row of thread.
  utid JOINID(thread.id),
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the thread.
  thread_name STRING,
  -- Number of the CPU among all machines.
  ucpu LONG,
  -- Number of the CPU on its machine.
  cpu LONG,
  -- Row of stack_profile_callsite.
  callsite_id LONG,
  -- Which profiler.
  source STRING
) AS
SELECT
  s.id,
  s.ts,
  t.utid,
  thread.tid,
  thread.name AS thread_name,
  x.ucpu,
  cpu.cpu,
  s.callsite_id,
  s.source
FROM stack_sample AS s
LEFT JOIN stack_sample_session AS session ON session.id = s.session_id
LEFT JOIN stack_sample_task_context AS t ON t.id = s.task_context_id
LEFT JOIN stack_sample_execution_context AS x ON x.id = s.execution_context_id
LEFT JOIN thread ON thread.utid = t.utid
LEFT JOIN cpu ON cpu.ucpu = x.ucpu
WHERE coalesce(session.timebase_unit, 'cycles') IN ('ns', 'cycles', 'instructions')
ORDER BY s.ts;

-- The call stacks of all samples: (id, parent_id, name, mapping_name, source_file, line_number, self_count).
CREATE PERFETTO TABLE _cpu_profiling_self_callsites AS
SELECT *
FROM _callstacks_for_callsites!(cpu_profiling_samples);

-- Call tree of the samples: how many stand on each node, and on it or below.
CREATE PERFETTO TABLE cpu_profiling_summary_tree(
  -- Id of the node.
  id LONG,
  -- The node that called it.
  parent_id LONG,
  -- Name of the function.
  name STRING,
  -- File that it lies in.
  mapping_name STRING,
  -- Source file.
  source_file STRING,
  -- Line of the source file.
  line_number LONG,
  -- Samples that stand on the node itself.
  self_count LONG,
  -- Samples on it and below.
  cumulative_count LONG
) AS
SELECT r.id, r.parent_id, r.name, r.mapping_name, r.source_file, r.line_number, r.self_count, a.cumulative_count
FROM _callstacks_self_to_cumulative!((SELECT id, parent_id, self_count FROM _cpu_profiling_self_callsites)) AS a
JOIN _cpu_profiling_self_callsites AS r USING (id)
ORDER BY r.id;
