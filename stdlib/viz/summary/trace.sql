-- What kind of machines the trace comes from.

-- True when the machine runs Linux.
CREATE PERFETTO FUNCTION _is_linux_machine(
  -- Row of machine.
  machine_id JOINID(machine.id)
)
RETURNS BOOL AS
SELECT coalesce(sysname = 'Linux', 0)
FROM machine
WHERE id = $machine_id;
