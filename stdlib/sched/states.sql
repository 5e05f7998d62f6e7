-- Thread states as people call them.

-- The name of a state such as 'S' or 'D'. Combinations, as 'DK', and what is not known come back as they are.
CREATE PERFETTO FUNCTION sched_state_to_human_readable_string(
  -- State, as in thread_state.state or sched.end_state.
  short_name STRING
)
-- The name in words.
RETURNS STRING AS
SELECT
  CASE $short_name
    WHEN 'R' THEN 'Runnable'
    WHEN 'R+' THEN 'Runnable (Preempted)'
    WHEN 'Running' THEN 'Running'
    WHEN 'S' THEN 'Sleeping'
    WHEN 'D' THEN 'Uninterruptible Sleep'
    WHEN 'T' THEN 'Stopped'
    WHEN 't' THEN 'Traced'
    WHEN 'X' THEN 'Exit (Dead)'
    WHEN 'Z' THEN 'Exit (Zombie)'
    WHEN 'x' THEN 'Task Dead'
    WHEN 'I' THEN 'Idle'
    WHEN 'K' THEN 'Wakekill'
    WHEN 'W' THEN 'Waking'
    WHEN 'P' THEN 'Parked'
    WHEN 'N' THEN 'No Load'
    ELSE $short_name
  END;

-- The same, told whether the thread waited for a device.
CREATE PERFETTO FUNCTION sched_state_io_to_human_readable_string(
  -- State of the thread, in the kernel's letters.
  sched_state STRING,
  -- True when the thread waited for a device; NULL when unknown.
  io_wait BOOL
)
-- The name in words.
RETURNS STRING AS
SELECT
  coalesce(sched_state_to_human_readable_string($sched_state), '')
  || CASE $io_wait WHEN 1 THEN ' (IO)' WHEN 0 THEN ' (non-IO)' ELSE '' END;
