-- Threads of the kernel.

-- Threads whose process is the kernel's: kthreadd, its children, and the idle threads.
CREATE PERFETTO TABLE linux_kernel_threads(
  -- Row of process.
  upid JOINID(process.id),
  -- Row of thread.
  utid JOINID(thread.id),
  -- The kernel's number of the process.
  pid LONG,
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the process.
  process_name STRING,
  -- Name of the thread.
  thread_name STRING,
  -- Row of machine.
  machine_id JOINID(machine.id)
) AS
WITH
  -- numbers are used again: kthreadd is pid 2 of its machine
  kthreadd AS (SELECT upid, machine_id FROM process WHERE pid = 2)
SELECT p.upid, t.utid, p.pid, t.tid, p.name AS process_name, t.name AS thread_name, t.machine_id
FROM process AS p
JOIN thread AS t USING (upid)
WHERE p.upid IN (SELECT upid FROM kthreadd) OR p.parent_upid IN (SELECT upid FROM kthreadd);
