-- Jobs that the system ran for applications, by its slices "*job*<uid>package/service#number" of the track JobScheduler.

-- The jobs.
CREATE PERFETTO TABLE android_job_scheduler_events(
  -- Number of the job, of its application's choosing.
  job_id LONG,
  -- The user id of its application.
  uid LONG,
  -- The application's package.
  package_name STRING,
  -- The service that does the job.
  job_service_name STRING,
  -- Row of track.
  track_id JOINID(track.id),
  -- Row of slice.
  id LONG,
  -- When the job began.
  ts TIMESTAMP,
  -- Duration of the job in nanoseconds.
  dur DURATION
) AS
SELECT
  cast_int!(str_split(s.name, '#', 1)) AS job_id,
  cast_int!(str_split(str_split(s.name, '<', 1), '>', 0)) AS uid,
  str_split(str_split(s.name, '>', 1), '/', 0) AS package_name,
  str_split(str_split(s.name, '/', 1), '#', 0) AS job_service_name,
  s.track_id,
  s.id,
  s.ts,
  iif(s.dur = -1, trace_end() - s.ts, s.dur) AS dur
FROM slice AS s
JOIN process_track AS t ON t.id = s.track_id
JOIN process AS p USING (upid)
WHERE p.name = 'system_server' AND s.name GLOB '*job*' AND t.name = 'JobScheduler';
