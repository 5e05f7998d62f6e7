-- Control groups, containers and units of systemd: which processes belong to which, and what each took.
--
-- Needs the data source linux.process_stats of Meridian's recorder, which writes the control group of each process when it
-- is first seen.

-- Processes whose control group is known.
CREATE PERFETTO TABLE linux_process_cgroup(
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- Its number inside of its namespace; NULL outside of any.
  namespace_pid LONG,
  -- Name of the process.
  process_name STRING,
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Path of the control group.
  cgroup STRING,
  -- Id of the innermost container, or its name where it has no id; NULL outside of any.
  container_id STRING,
  -- Who runs it: docker, containerd, cri-o, podman, lxc, systemd-nspawn; NULL where the path does not tell.
  container_runtime STRING,
  -- UID of the pod of Kubernetes.
  pod_uid STRING,
  -- Unit of systemd.
  systemd_unit STRING,
  -- Short name of what the process belongs to: the first 12 digits of the container's id, else the unit, else the path.
  group_name STRING
) AS
WITH
  found AS (
    SELECT
      p.upid,
      p.pid,
      extract_arg(p.arg_set_id, 'process.vpid') AS namespace_pid,
      p.name AS process_name,
      p.machine_id,
      extract_arg(p.arg_set_id, 'process.cgroup') AS cgroup,
      extract_arg(p.arg_set_id, 'container.id') AS container_id,
      extract_arg(p.arg_set_id, 'container.runtime') AS container_runtime,
      extract_arg(p.arg_set_id, 'k8s.pod.uid') AS pod_uid,
      extract_arg(p.arg_set_id, 'systemd.unit') AS systemd_unit
    FROM process AS p
  )
SELECT
  *,
  coalesce(iif(length(container_id) = 64, substr(container_id, 1, 12), container_id), systemd_unit, cgroup) AS group_name
FROM found
WHERE cgroup IS NOT NULL;

-- Containers of each machine.
CREATE PERFETTO TABLE linux_container(
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Id of the container, or its name where it has no id.
  container_id STRING,
  -- Who runs it.
  container_runtime STRING,
  -- UID of the pod of Kubernetes.
  pod_uid STRING,
  -- How many processes were seen in it.
  process_count LONG,
  -- The process with the least number, by which the container began if it was there at that time.
  first_upid JOINID(process.id),
  -- Its name.
  first_process_name STRING
) AS
SELECT
  machine_id,
  container_id,
  max(container_runtime) AS container_runtime,
  max(pod_uid) AS pod_uid,
  count(*) AS process_count,
  (
    SELECT f.upid FROM linux_process_cgroup AS f
    WHERE f.container_id = c.container_id AND f.machine_id = c.machine_id
    ORDER BY f.pid, f.upid LIMIT 1
  ) AS first_upid,
  (
    SELECT f.process_name FROM linux_process_cgroup AS f
    WHERE f.container_id = c.container_id AND f.machine_id = c.machine_id
    ORDER BY f.pid, f.upid LIMIT 1
  ) AS first_process_name
FROM linux_process_cgroup AS c
WHERE container_id IS NOT NULL
GROUP BY machine_id, container_id
ORDER BY machine_id, container_id;

-- CPU time and wait for a CPU of each control group.
CREATE PERFETTO TABLE linux_cgroup_cpu(
  -- Row of machine.
  machine_id JOINID(machine.id),
  -- Path of the control group.
  cgroup STRING,
  -- Short name of what it is, as in linux_process_cgroup.
  group_name STRING,
  -- How many processes were seen in it.
  process_count LONG,
  -- How long its threads ran.
  cpu_dur DURATION,
  -- How long its threads waited for a CPU.
  runnable_dur DURATION
) AS
WITH
  by_thread AS (
    SELECT
      utid,
      sum(iif(state = 'Running', max(dur, 0), 0)) AS cpu_dur,
      sum(iif(state IN ('R', 'R+'), max(dur, 0), 0)) AS runnable_dur
    FROM thread_state
    WHERE state IN ('Running', 'R', 'R+')
    GROUP BY utid
  ),
  by_process AS (
    SELECT t.upid, sum(b.cpu_dur) AS cpu_dur, sum(b.runnable_dur) AS runnable_dur
    FROM by_thread AS b
    JOIN thread AS t USING (utid)
    GROUP BY t.upid
  )
SELECT
  c.machine_id,
  c.cgroup,
  c.group_name,
  count(*) AS process_count,
  sum(coalesce(b.cpu_dur, 0)) AS cpu_dur,
  sum(coalesce(b.runnable_dur, 0)) AS runnable_dur
FROM linux_process_cgroup AS c
LEFT JOIN by_process AS b USING (upid)
GROUP BY c.machine_id, c.cgroup, c.group_name
ORDER BY cpu_dur DESC, c.cgroup;
