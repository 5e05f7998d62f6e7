-- Interrupts.

-- Handlers of hardware interrupts.
CREATE PERFETTO VIEW linux_hard_irqs(
  -- When the handler's run began.
  ts TIMESTAMP,
  -- Duration of the handler's run in nanoseconds.
  dur DURATION,
  -- Name of the handler.
  name STRING,
  -- Row of slice.
  id JOINID(slice.id),
  -- The slice above it: a handler that was interrupted.
  parent_id JOINID(slice.id)
) AS
SELECT s.ts, s.dur, s.name, s.id, s.parent_id
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE t.type = 'cpu_irq';

-- Handlers of soft interrupts.
CREATE PERFETTO VIEW linux_soft_irqs(
  -- When the handler's run began.
  ts TIMESTAMP,
  -- Duration of the handler's run in nanoseconds.
  dur DURATION,
  -- Name of the vector.
  name STRING,
  -- Row of slice.
  id JOINID(slice.id)
) AS
SELECT s.ts, s.dur, s.name, s.id
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE t.type = 'cpu_softirq';

-- Both.
CREATE PERFETTO VIEW linux_irqs(
  -- When the handler's run began.
  ts TIMESTAMP,
  -- Duration of the handler's run in nanoseconds.
  dur DURATION,
  -- Name of the handler or vector.
  name STRING,
  -- Row of slice.
  id JOINID(slice.id),
  -- The slice above it.
  parent_id JOINID(slice.id),
  -- Is it a soft interrupt?
  is_soft_irq BOOL
) AS
SELECT ts, dur, name, id, parent_id, FALSE AS is_soft_irq
FROM linux_hard_irqs
UNION ALL
SELECT ts, dur, name, id, NULL AS parent_id, TRUE AS is_soft_irq
FROM linux_soft_irqs;

-- Numbers of interrupts and the devices behind them.
CREATE PERFETTO VIEW linux_interrupt_mapping(
  -- Number of the row.
  id ID,
  -- The kernel's number of the interrupt.
  irq_id LONG,
  -- Its name.
  name STRING,
  -- Row of machine.
  machine_id JOINID(machine.id)
) AS
SELECT id, irq_id, name, machine_id
FROM _linux_interrupt_mapping;
