-- Time in the hypervisor of protected virtual machines.

-- One row for each time that a CPU was there.
CREATE PERFETTO VIEW pkvm_hypervisor_events(
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Number of the processor on its machine.
  cpu JOINID(cpu.cpu),
  -- When the stay in the hypervisor began.
  ts TIMESTAMP,
  -- Duration of the stay in the hypervisor in nanoseconds.
  dur DURATION,
  -- Why the hypervisor was entered; NULL when no event told.
  reason STRING
) AS
SELECT
  s.id AS slice_id,
  extract_arg(t.dimension_arg_set_id, 'cpu') AS cpu,
  s.ts,
  s.dur,
  extract_arg(s.arg_set_id, 'hyp_enter_reason') AS reason
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE t.type = 'pkvm_hypervisor';
