-- Periods in which GPUs worked for a user (uid).

-- Tracks of work periods.
CREATE PERFETTO TABLE android_gpu_work_period_track(
  -- Row of track.
  id LONG,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- The user id it counts for.
  uid LONG,
  -- Row of gpu.
  ugpu LONG,
  -- Number of the GPU on its machine.
  gpu_id LONG
) AS
SELECT
  id,
  machine_id,
  extract_arg(dimension_arg_set_id, 'uid') AS uid,
  extract_arg(dimension_arg_set_id, 'ugpu') AS ugpu,
  extract_arg(dimension_arg_set_id, 'gpu') AS gpu_id
FROM track
WHERE type = 'android_gpu_work_period';
