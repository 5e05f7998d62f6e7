-- Jobs that the system ran for applications, by the events of its statistics service, with what they waited for.

INCLUDE PERFETTO MODULE android.battery.charging_states;
INCLUDE PERFETTO MODULE android.screen_state;
INCLUDE PERFETTO MODULE android.statsd;
INCLUDE PERFETTO MODULE intervals.intersect;

-- A field of such an event.
CREATE PERFETTO FUNCTION _job_field(
  arg_set_id LONG,
  name STRING
)
RETURNS ANY AS
SELECT extract_arg($arg_set_id, 'scheduled_job_state_changed.' || $name);

-- The events: what became of a job, and its conditions.
CREATE PERFETTO TABLE _job_states AS
SELECT
  id AS slice_id,
  ts,
  arg_set_id,
  _job_field(arg_set_id, 'job_name') AS job_name,
  _job_field(arg_set_id, 'attribution_node[0].uid') AS uid,
  _job_field(arg_set_id, 'job_id') AS job_id,
  _job_field(arg_set_id, 'state') AS state,
  _job_field(arg_set_id, 'effective_priority') AS effective_priority,
  _job_field(arg_set_id, 'has_battery_not_low_constraint') AS has_battery_not_low_constraint,
  _job_field(arg_set_id, 'has_charging_constraint') AS has_charging_constraint,
  _job_field(arg_set_id, 'has_connectivity_constraint') AS has_connectivity_constraint,
  _job_field(arg_set_id, 'has_content_trigger_constraint') AS has_content_trigger_constraint,
  _job_field(arg_set_id, 'has_deadline_constraint') AS has_deadline_constraint,
  _job_field(arg_set_id, 'has_idle_constraint') AS has_idle_constraint,
  _job_field(arg_set_id, 'has_storage_not_low_constraint') AS has_storage_not_low_constraint,
  _job_field(arg_set_id, 'has_timing_delay_constraint') AS has_timing_delay_constraint,
  _job_field(arg_set_id, 'is_prefetch') = 1 AS is_prefetch,
  _job_field(arg_set_id, 'is_requested_expedited_job') AS is_requested_expedited_job,
  _job_field(arg_set_id, 'is_running_as_expedited_job') AS is_running_as_expedited_job,
  _job_field(arg_set_id, 'num_previous_attempts') AS num_previous_attempts,
  _job_field(arg_set_id, 'requested_priority') AS requested_priority,
  _job_field(arg_set_id, 'standby_bucket') AS standby_bucket,
  _job_field(arg_set_id, 'is_periodic') AS is_periodic,
  -- what is periodic may be moved within its period
  _job_field(arg_set_id, 'is_periodic') AS has_flex_constraint,
  _job_field(arg_set_id, 'is_requested_as_user_initiated_job') AS is_requested_as_user_initiated_job,
  _job_field(arg_set_id, 'is_running_as_user_initiated_job') AS is_running_as_user_initiated_job,
  _job_field(arg_set_id, 'deadline_ms') AS deadline_ms,
  _job_field(arg_set_id, 'job_start_latency_ms') AS job_start_latency_ms,
  _job_field(arg_set_id, 'num_uncompleted_work_items') AS num_uncompleted_work_items,
  _job_field(arg_set_id, 'proc_state') AS proc_state,
  _job_field(arg_set_id, 'internal_stop_reason') AS internal_stop_reason,
  _job_field(arg_set_id, 'public_stop_reason') AS public_stop_reason
FROM android_statsd_atoms
WHERE name = 'scheduled_job_state_changed';

-- A job's runs: from STARTED to the next event of the same job, those of calling it off apart.
CREATE PERFETTO TABLE _job_runs AS
WITH
  paired AS (
    SELECT
      *,
      lead(ts) OVER by_job AS next_ts,
      lead(state) OVER by_job AS next_state,
      lead(internal_stop_reason, 1, 'INTERNAL_STOP_REASON_UNKNOWN') OVER by_job AS next_internal_stop_reason,
      lead(public_stop_reason, 1, 'PUBLIC_STOP_REASON_UNKNOWN') OVER by_job AS next_public_stop_reason
    FROM _job_states
    WHERE state != 'CANCELLED'
    WINDOW by_job AS (PARTITION BY uid, job_name, job_id ORDER BY ts)
  )
SELECT
  row_number() OVER (ORDER BY ts) AS id,
  *,
  next_ts - ts AS dur,
  -- "@namespace@tag/package", "@namespace@package/service", "package/service" or "tag/package"
  CASE
    WHEN substr(job_name, 1, 1) != '@' THEN str_split(job_name, '/', 0)
    WHEN substr(str_split(job_name, '/', 1), 1, 3) = 'com' THEN str_split(job_name, '/', 1)
    ELSE str_split(str_split(job_name, '/', 0), '@', 2)
  END AS package_name,
  iif(substr(job_name, 1, 1) = '@', str_split(job_name, '@', 1), str_split(job_name, '/', 1)) AS job_namespace
FROM paired
WHERE state = 'STARTED' AND next_state IN ('FINISHED', 'SCHEDULED') AND next_ts > ts;

-- The runs by name, with how long each lasted.
CREATE PERFETTO VIEW _job_started AS
SELECT id, ts, dur, slice_id, job_name, uid, job_id, package_name, job_namespace FROM _job_runs;

-- The runs with the conditions of the job.
CREATE PERFETTO TABLE android_job_scheduler_states(
  -- Number of the span.
  id ID,
  -- When the run of the job began.
  ts TIMESTAMP,
  -- Duration of the run of the job in nanoseconds.
  dur DURATION,
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Name of the job.
  job_name STRING,
  -- The user id of its application.
  uid LONG,
  -- Number of the job, of its application's choosing.
  job_id LONG,
  -- The application's package.
  package_name STRING,
  -- The name space that the application gave it.
  job_namespace STRING,
  -- The priority that counted.
  effective_priority LONG,
  -- Must the battery not be low?
  has_battery_not_low_constraint BOOL,
  -- Must the device be charging?
  has_charging_constraint BOOL,
  -- Must there be a network?
  has_connectivity_constraint BOOL,
  -- Does it wait for content to change?
  has_content_trigger_constraint BOOL,
  -- Has it a deadline?
  has_deadline_constraint BOOL,
  -- Must the device be idle?
  has_idle_constraint BOOL,
  -- Must there be storage left?
  has_storage_not_low_constraint BOOL,
  -- Must some time pass first?
  has_timing_delay_constraint BOOL,
  -- Does it fetch what the next launch will need?
  is_prefetch BOOL,
  -- Was it asked for as expedited?
  is_requested_expedited_job BOOL,
  -- Did it run as expedited?
  is_running_as_expedited_job BOOL,
  -- How often it was tried before.
  num_previous_attempts TIMESTAMP,
  -- The priority that was asked for.
  requested_priority LONG,
  -- How much the application is used, in Android's classes.
  standby_bucket STRING,
  -- Does it repeat?
  is_periodic BOOL,
  -- May the system choose its time within a window?
  has_flex_constraint BOOL,
  -- Was it asked for as begun by the user?
  is_requested_as_user_initiated_job BOOL,
  -- Did it run as begun by the user?
  is_running_as_user_initiated_job BOOL,
  -- Its deadline in milliseconds.
  deadline_ms LONG,
  -- Milliseconds from ready to started.
  job_start_latency_ms LONG,
  -- Pieces of work that were left.
  num_uncompleted_work_items LONG,
  -- Android's state of the process when it began.
  proc_state STRING,
  -- Why it was stopped, for the system.
  internal_stop_reason STRING,
  -- Why it was stopped, as the application is told.
  public_stop_reason STRING
) AS
SELECT
  r.id,
  r.ts,
  r.dur,
  r.slice_id,
  r.job_name,
  r.uid,
  r.job_id,
  r.package_name,
  r.job_namespace,
  r.effective_priority,
  r.has_battery_not_low_constraint,
  r.has_charging_constraint,
  r.has_connectivity_constraint,
  r.has_content_trigger_constraint,
  r.has_deadline_constraint,
  r.has_idle_constraint,
  r.has_storage_not_low_constraint,
  r.has_timing_delay_constraint,
  r.is_prefetch,
  r.is_requested_expedited_job,
  r.is_running_as_expedited_job,
  r.num_previous_attempts,
  r.requested_priority,
  r.standby_bucket,
  r.is_periodic,
  r.has_flex_constraint,
  r.is_requested_as_user_initiated_job,
  r.is_running_as_user_initiated_job,
  r.deadline_ms,
  r.job_start_latency_ms,
  r.num_uncompleted_work_items,
  r.proc_state,
  r.next_internal_stop_reason AS internal_stop_reason,
  r.next_public_stop_reason AS public_stop_reason
FROM _job_runs AS r;

-- Whether the screen was on and the phone charged, in spans in which neither changes.
CREATE PERFETTO TABLE _charging_screen_states AS
SELECT row_number() OVER () AS id, i.ts, i.dur, c.charging_state, s.screen_state
FROM _interval_intersect!((
  (SELECT id, ts, dur FROM android_charging_states),
  (SELECT id, ts, dur FROM android_screen_state)
), ()) AS i
JOIN android_charging_states AS c ON c.id = i.id_0
JOIN android_screen_state AS s ON s.id = i.id_1;

-- The same, cut where the screen or the charger changes.
CREATE PERFETTO TABLE android_job_scheduler_with_screen_charging_states(
  -- When the part of the run began.
  ts TIMESTAMP,
  -- Length of the part of the job with these states.
  dur DURATION,
  -- Row of slice.
  slice_id JOINID(slice.id),
  -- Name of the job, with its number behind a line.
  job_name STRING,
  -- Number of the job, of its application's choosing.
  job_id LONG,
  -- The user id of its application.
  uid LONG,
  -- Length of the whole job.
  job_dur DURATION,
  -- The application's package.
  package_name STRING,
  -- The name space that the application gave it.
  job_namespace STRING,
  -- State of the battery.
  charging_state STRING,
  -- State of the screen.
  screen_state STRING,
  -- The priority that counted.
  effective_priority LONG,
  -- Must the battery not be low?
  has_battery_not_low_constraint BOOL,
  -- Must the device be charging?
  has_charging_constraint BOOL,
  -- Must there be a network?
  has_connectivity_constraint BOOL,
  -- Does it wait for content to change?
  has_content_trigger_constraint BOOL,
  -- Has it a deadline?
  has_deadline_constraint BOOL,
  -- Must the device be idle?
  has_idle_constraint BOOL,
  -- Must there be storage left?
  has_storage_not_low_constraint BOOL,
  -- Must some time pass first?
  has_timing_delay_constraint BOOL,
  -- Does it fetch what the next launch will need?
  is_prefetch BOOL,
  -- Was it asked for as expedited?
  is_requested_expedited_job BOOL,
  -- Did it run as expedited?
  is_running_as_expedited_job BOOL,
  -- How often it was tried before.
  num_previous_attempts TIMESTAMP,
  -- The priority that was asked for.
  requested_priority LONG,
  -- How much the application is used, in Android's classes.
  standby_bucket STRING,
  -- Does it repeat?
  is_periodic BOOL,
  -- May the system choose its time within a window?
  has_flex_constraint BOOL,
  -- Was it asked for as begun by the user?
  is_requested_as_user_initiated_job BOOL,
  -- Did it run as begun by the user?
  is_running_as_user_initiated_job BOOL,
  -- Its deadline in milliseconds.
  deadline_ms LONG,
  -- Milliseconds from ready to started.
  job_start_latency_ms LONG,
  -- Pieces of work that were left.
  num_uncompleted_work_items LONG,
  -- Android's state of the process when it began.
  proc_state STRING,
  -- Why it was stopped, for the system.
  internal_stop_reason STRING,
  -- Why it was stopped, as the application is told.
  public_stop_reason STRING
) AS
SELECT
  i.ts,
  i.dur,
  j.slice_id,
  j.job_name || '_' || j.job_id AS job_name,
  j.uid,
  j.job_id,
  j.dur AS job_dur,
  j.package_name,
  j.job_namespace,
  x.charging_state,
  x.screen_state,
  j.effective_priority,
  j.has_battery_not_low_constraint,
  j.has_charging_constraint,
  j.has_connectivity_constraint,
  j.has_content_trigger_constraint,
  j.has_deadline_constraint,
  j.has_idle_constraint,
  j.has_storage_not_low_constraint,
  j.has_timing_delay_constraint,
  j.is_prefetch,
  j.is_requested_expedited_job,
  j.is_running_as_expedited_job,
  j.num_previous_attempts,
  j.requested_priority,
  j.standby_bucket,
  j.is_periodic,
  j.has_flex_constraint,
  j.is_requested_as_user_initiated_job,
  j.is_running_as_user_initiated_job,
  j.deadline_ms,
  j.job_start_latency_ms,
  j.num_uncompleted_work_items,
  j.proc_state,
  j.internal_stop_reason,
  j.public_stop_reason
FROM _interval_intersect!((
  (SELECT id, ts, dur FROM android_job_scheduler_states),
  (SELECT id, ts, dur FROM _charging_screen_states)
), ()) AS i
JOIN android_job_scheduler_states AS j ON j.id = i.id_0
JOIN _charging_screen_states AS x ON x.id = i.id_1;
