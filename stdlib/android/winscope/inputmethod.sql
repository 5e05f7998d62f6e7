-- Snapshots of input methods.

-- Of the applications that take input.
CREATE PERFETTO VIEW android_inputmethod_clients(
  id LONG,
  ts TIMESTAMP,
  arg_set_id ARGSETID
) AS
SELECT id, ts, arg_set_id
FROM __intrinsic_inputmethod_clients;

-- Of the service that manages them.
CREATE PERFETTO VIEW android_inputmethod_manager_service(
  id LONG,
  ts TIMESTAMP,
  arg_set_id ARGSETID
) AS
SELECT id, ts, arg_set_id
FROM __intrinsic_inputmethod_manager_service;

-- Of the input method itself.
CREATE PERFETTO VIEW android_inputmethod_service(
  id LONG,
  ts TIMESTAMP,
  arg_set_id ARGSETID
) AS
SELECT id, ts, arg_set_id
FROM __intrinsic_inputmethod_service;
