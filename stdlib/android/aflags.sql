-- Flags of Android packages and their values.

-- Flag values as they were read, one row a flag.
CREATE PERFETTO VIEW android_aflags(
  ts TIMESTAMP,
  package STRING,
  name STRING,
  flag_namespace STRING,
  container STRING,
  value STRING,
  staged_value STRING,
  permission STRING,
  value_picked_from STRING,
  storage_backend STRING,
  type STRING
) AS
SELECT
  ts,
  extract_arg(arg_set_id, 'package') AS package,
  extract_arg(arg_set_id, 'name') AS name,
  extract_arg(arg_set_id, 'flag_namespace') AS flag_namespace,
  extract_arg(arg_set_id, 'container') AS container,
  extract_arg(arg_set_id, 'value') AS value,
  extract_arg(arg_set_id, 'staged_value') AS staged_value,
  extract_arg(arg_set_id, 'permission') AS permission,
  extract_arg(arg_set_id, 'value_picked_from') AS value_picked_from,
  extract_arg(arg_set_id, 'storage_backend') AS storage_backend,
  'aflag' AS type
FROM slice
WHERE track_id IN (SELECT id FROM track WHERE type = 'android_aflags');
