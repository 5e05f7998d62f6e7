-- What is known of the trace as a whole; there before any data.

-- Facts of the trace and its machines.
CREATE PERFETTO VIEW metadata(
  -- Number of the row, from 0.
  id ID,
  -- Name of the fact, for instance trace_uuid.
  name STRING,
  -- single or multi: whether there may be several of the name.
  key_type STRING,
  -- The value, when it is an integer.
  int_value LONG,
  -- The value, when it is text.
  str_value STRING,
  -- The machine it is said of; NULL: the whole trace.
  machine_id JOINID(machine.id),
  -- The file it is said of; NULL: all.
  trace_id LONG
)
AS
SELECT id, name, key_type, int_value, str_value, machine_id, trace_id
FROM __intrinsic_metadata;
