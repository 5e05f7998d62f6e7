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
  -- Kind of value, for example boolean.
  type STRING
) AS
SELECT
  ts,
  package,
  name,
  flag_namespace,
  container,
  value,
  staged_value,
  permission,
  value_picked_from,
  storage_backend,
  type
FROM __intrinsic_android_aflags;
