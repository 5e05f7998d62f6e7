-- What the tracing service tells about itself.

-- How long each buffer took to be copied when the trace was cloned, from the start of the clone.
CREATE PERFETTO TABLE traced_clone_flush_latency(
  -- Number of the buffer.
  buffer_id LONG,
  -- Duration of the copy in nanoseconds.
  duration_ns LONG,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Row of trace_file.
  trace_id LONG
) AS
SELECT d.idx AS buffer_id, d.value - s.value AS duration_ns, d.machine_id, d.trace_id
FROM stats AS d
JOIN stats AS s
  ON s.name = 'traced_clone_started_timestamp_ns' AND s.machine_id IS d.machine_id AND s.trace_id IS d.trace_id
WHERE d.name = 'traced_buf_clone_done_timestamp_ns' AND s.value != 0
ORDER BY d.machine_id, d.trace_id, d.idx;

-- The same from the moment that the trigger came.
CREATE PERFETTO TABLE traced_trigger_clone_flush_latency(
  -- Number of the buffer.
  buffer_id LONG,
  -- Duration of the copy in nanoseconds.
  duration_ns LONG,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Row of trace_file.
  trace_id LONG
) AS
SELECT d.idx AS buffer_id, d.value - s.value AS duration_ns, d.machine_id, d.trace_id
FROM stats AS d
JOIN stats AS s
  ON s.name = 'traced_clone_trigger_timestamp_ns' AND s.machine_id IS d.machine_id AND s.trace_id IS d.trace_id
WHERE d.name = 'traced_buf_clone_done_timestamp_ns' AND s.value != 0
ORDER BY d.machine_id, d.trace_id, d.idx;
