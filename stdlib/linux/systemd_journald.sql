-- The journal of systemd.

-- Messages of the journal.
CREATE PERFETTO VIEW linux_systemd_journald_logs(
  -- Row of logs.
  id ID,
  -- Time of the message.
  ts TIMESTAMP,
  -- Row of thread.
  utid JOINID(thread.id),
  -- Priority as syslog has it: 0 the worst.
  prio LONG,
  -- Who says it.
  tag STRING,
  -- The message.
  msg STRING,
  -- User that the sender ran as.
  uid LONG,
  -- Name of the sending process.
  comm STRING,
  -- Unit that it belongs to.
  systemd_unit STRING,
  -- Name of the machine.
  hostname STRING,
  -- How the message came to the journal.
  transport STRING
) AS
SELECT
  id,
  ts,
  utid,
  prio,
  tag,
  msg,
  CAST(extract_arg(arg_set_id, 'uid') AS INT) AS uid,
  extract_arg(arg_set_id, 'comm') AS comm,
  extract_arg(arg_set_id, 'systemd_unit') AS systemd_unit,
  extract_arg(arg_set_id, 'hostname') AS hostname,
  extract_arg(arg_set_id, 'transport') AS transport
FROM logs
WHERE log_source = 'systemd_journald';
