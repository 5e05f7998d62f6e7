-- The packages that processes belong to.

-- The number of an application without the user's part, and without that of isolated processes.
CREATE PERFETTO FUNCTION _app_id_to_base_package(
  app_id LONG
)
RETURNS LONG AS
SELECT $app_id % 100000;

-- How many packages share a uid.
CREATE PERFETTO TABLE _uid_package_count AS
SELECT uid, count() AS cnt FROM package_list GROUP BY uid;

-- The package of a process: the only one of its uid, or the one that its name begins with.
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
WHERE uid = $uid % 100000 AND ($uid_count = 1 OR $process_name GLOB package_name || '*')
LIMIT 1;

-- Processes of the kernel.
CREATE PERFETTO TABLE _android_kernel_tasks(
  upid LONG
) AS
SELECT upid
FROM process
WHERE pid = 2 OR parent_upid IN (SELECT upid FROM process WHERE pid = 2);

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
  -- Do several packages share the uid?
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
SELECT
  p.upid,
  p.pid,
  p.name AS process_name,
  p.uid,
  coalesce(n.cnt > 1, 0) AS shared_uid,
  p.uid / 100000 AS user_id,
  NULL AS user_type,
  (SELECT f.package_name FROM _android_package_for_process(p.uid, n.cnt, p.name) AS f) AS package_name,
  (SELECT f.version_code FROM _android_package_for_process(p.uid, n.cnt, p.name) AS f) AS version_code,
  (SELECT f.debuggable FROM _android_package_for_process(p.uid, n.cnt, p.name) AS f) AS debuggable,
  p.upid IN (SELECT upid FROM _android_kernel_tasks) AS is_kernel_task
FROM process AS p
LEFT JOIN _uid_package_count AS n ON n.uid = p.uid % 100000;
