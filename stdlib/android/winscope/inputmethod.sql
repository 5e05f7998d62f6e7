-- Snapshots of input methods.

-- Of the applications that take input.
CREATE PERFETTO VIEW android_inputmethod_clients(
  -- Number of the snapshot.
  id LONG,
  -- When it was taken.
  ts TIMESTAMP,
  -- Details: the set of args.
  arg_set_id ARGSETID
) AS
SELECT id, ts, arg_set_id
FROM __intrinsic_inputmethod_clients;

-- Of the service that manages them.
CREATE PERFETTO VIEW android_inputmethod_manager_service(
  -- Number of the snapshot.
  id LONG,
  -- When it was taken.
  ts TIMESTAMP,
  -- Details: the set of args.
  arg_set_id ARGSETID
) AS
SELECT id, ts, arg_set_id
FROM __intrinsic_inputmethod_manager_service;

-- Of the input method itself.
CREATE PERFETTO VIEW android_inputmethod_service(
  -- Number of the snapshot.
  id LONG,
  -- When it was taken.
  ts TIMESTAMP,
  -- Details: the set of args.
  arg_set_id ARGSETID
) AS
SELECT id, ts, arg_set_id
FROM __intrinsic_inputmethod_service;
