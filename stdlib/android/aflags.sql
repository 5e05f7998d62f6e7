-- Flags of Android packages and their values.

-- Flag values as they were read, one row a flag.
CREATE PERFETTO VIEW android_aflags(
  -- When the flag was read.
  ts TIMESTAMP,
  -- The package that the flag is of.
  package STRING,
  -- Name of the flag.
  name STRING,
  -- Name space of the flag.
  flag_namespace STRING,
  -- The partition or module that holds it.
  container STRING,
  -- The value in force.
  value STRING,
  -- The value that the next boot brings; NULL: none waits.
  staged_value STRING,
  -- May it be changed: read-only or read-write.
  permission STRING,
  -- Whether the value is the default, from the server or local.
  value_picked_from STRING,
  -- Where the value is kept.
  storage_backend STRING,
  -- Always "aflag".
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
