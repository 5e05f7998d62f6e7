-- Counters of losses and errors; there before any data.

-- What was lost, skipped or wrong, while recording and while importing; docs/checking.md.
CREATE PERFETTO VIEW stats(
  -- Number of the row.
  id ID,
  -- Name of the stat.
  name STRING,
  -- Number of the stat.
  key LONG,
  -- Which cpu, buffer …, of an indexed stat; else NULL.
  idx LONG,
  -- info, data_loss or error.
  severity STRING,
  -- trace: it happened while recording; analysis: while importing.
  source STRING,
  -- How often, or how much.
  value LONG,
  -- What it means and what to do about it.
  description STRING,
  -- The machine it is counted for; NULL: the whole trace.
  machine_id JOINID(machine.id),
  -- The file it is counted for; NULL: all.
  trace_id LONG
)
AS
SELECT id, name, key, idx, severity, source, value, description, machine_id, trace_id
FROM __intrinsic_stats;
