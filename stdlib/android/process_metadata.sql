-- The packages that processes belong to.

INCLUDE PERFETTO MODULE android.user_list;

-- The number of an application without the user's part, and without that of isolated processes.
CREATE PERFETTO FUNCTION _app_id_to_base_package(
  app_id LONG
)
RETURNS LONG AS
SELECT $app_id - CASE WHEN $app_id BETWEEN 20000 AND 29999 THEN 10000 WHEN $app_id BETWEEN 30000 AND 39999 THEN 20000 ELSE 0 END;

-- How many packages share a uid.
CREATE PERFETTO TABLE _uid_package_count AS
SELECT uid, count() AS cnt FROM package_list GROUP BY uid;

-- The package of a process: of those with its uid the only one, or the one that its name begins with; isolated processes
-- have uids of their own, and names that begin with their package's. The longest name wins.
CREATE PERFETTO FUNCTION _android_package_for_process(
  uid LONG,
  uid_count LONG,
  process_name STRING
)
RETURNS TABLE(
  package_name STRING,
  version_code LONG,
  debuggable BOOL
) AS
SELECT package_name, version_code, debuggable
FROM package_list
WHERE
  (uid = $uid AND ($uid_count = 1 OR substr($process_name, 1, length(package_name)) = package_name))
  OR (
    $uid BETWEEN 90000 AND 99999
    AND substr(substr($process_name, 1, instr($process_name || ':', ':') - 1), 1, length(package_name)) = package_name
  )
ORDER BY abs(length($process_name) - length(package_name))
LIMIT 1;

-- Processes of the kernel.
CREATE PERFETTO TABLE _android_kernel_tasks(
  upid LONG
) AS
SELECT p.upid
FROM process AS p
LEFT JOIN process AS parent ON parent.upid = p.parent_upid
WHERE p.pid = 0 OR parent.pid = 0 OR parent.name = 'kthreadd';

-- True for a process of the kernel.
CREATE PERFETTO FUNCTION android_is_kernel_task(
  -- The process: row of process.
  upid LONG
)
-- True or false.
RETURNS BOOL AS
SELECT EXISTS (SELECT 1 FROM _android_kernel_tasks WHERE upid = $upid);

-- Processes with their packages.
CREATE PERFETTO TABLE android_process_metadata(
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- Name of the process.
  process_name STRING,
  -- The user id that it runs as.
  uid LONG,
  -- 1 when several packages share the uid, else NULL.
  shared_uid BOOL,
  -- Number of the user.
  user_id LONG,
  -- Type of the user; NULL: not known.
  user_type STRING,
  -- The application's package.
  package_name STRING,
  -- Version of the package.
  version_code LONG,
  -- Can the package be debugged?
  debuggable LONG,
  -- Is it a process of the kernel?
  is_kernel_task BOOL
) AS
WITH
  named AS (
    SELECT
      upid,
      pid,
      iif(
        length(name) = 15 AND (cmdline IN ('zygote', 'zygote64', '<pre-initialized>') OR substr(cmdline, -15) = name),
        cmdline,
        name
      ) AS name,
      android_appid,
      android_user_id,
      _app_id_to_base_package(android_appid) AS base_uid
    FROM process
  )
SELECT
  p.upid,
  p.pid,
  p.name AS process_name,
  p.android_appid AS uid,
  iif(n.cnt > 1, 1, NULL) AS shared_uid,
  p.android_user_id AS user_id,
  (SELECT u.type FROM android_user_list AS u WHERE u.android_user_id = p.android_user_id) AS user_type,
  (SELECT f.package_name FROM _android_package_for_process(p.base_uid, n.cnt, p.name) AS f) AS package_name,
  (SELECT f.version_code FROM _android_package_for_process(p.base_uid, n.cnt, p.name) AS f) AS version_code,
  (SELECT f.debuggable FROM _android_package_for_process(p.base_uid, n.cnt, p.name) AS f) AS debuggable,
  p.upid IN (SELECT upid FROM _android_kernel_tasks) AS is_kernel_task
FROM named AS p
LEFT JOIN _uid_package_count AS n ON n.uid = p.base_uid;
