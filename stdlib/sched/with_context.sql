-- What ran on CPUs, with names.

-- Running spans with the names of thread and process.
CREATE PERFETTO VIEW sched_with_thread_process(
  -- Row of sched.
  id ID(sched.id),
  -- When the running span began.
  ts TIMESTAMP,
  -- Duration of the running span in nanoseconds.
  dur DURATION,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Name of the thread.
  thread_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the process.
  process_name STRING,
  -- Number of the CPU.
  cpu LONG,
  -- State of the thread when it left the CPU.
  end_state STRING,
  -- The kernel's priority.
  priority LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.utid,
  thread.upid,
  thread.name AS thread_name,
  process.name AS process_name,
  s.cpu,
  s.end_state,
  s.priority
FROM sched AS s
JOIN thread USING (utid)
LEFT JOIN process USING (upid);
