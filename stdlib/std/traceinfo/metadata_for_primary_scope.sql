-- The metadata of the first trace and of the host, without those of other traces and machines.

CREATE PERFETTO TABLE _metadata_for_primary_scope(
  name STRING,
  str_value STRING,
  int_value LONG,
  key_type STRING
) AS
SELECT name, str_value, int_value, key_type
FROM metadata
WHERE
  coalesce(machine_id, 0) = 0
  AND coalesce(trace_id, 0) = coalesce((SELECT min(trace_id) FROM metadata), 0);
