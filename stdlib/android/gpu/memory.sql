-- Memory of GPUs by process.

INCLUDE PERFETTO MODULE linux.memory.general;

-- The spans from value to value, in bytes. The last one of a process goes to its end, or that of the trace.
CREATE PERFETTO TABLE android_gpu_memory_per_process(
  -- When the value began.
  ts TIMESTAMP,
  -- Duration of the value in nanoseconds.
  dur DURATION,
  -- Row of process.
  upid JOINID(process.id),
  -- Bytes of GPU memory.
  gpu_memory LONG
) AS
SELECT ts, dur, upid, cast_int!(value) AS gpu_memory
FROM _all_counters_per_process
WHERE name = 'GPU Memory';
