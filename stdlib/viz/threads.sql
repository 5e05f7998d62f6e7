-- Which threads are the kernel's, for a timeline.

INCLUDE PERFETTO MODULE linux.threads;

CREATE PERFETTO TABLE _kernel_threads AS
SELECT utid, upid
FROM linux_kernel_threads;

-- All threads: the columns of thread and is_kernel_thread.
CREATE PERFETTO TABLE _threads_with_kernel_flag AS
SELECT
  t.utid,
  t.upid,
  t.tid,
  t.name,
  t.is_main_thread,
  t.machine_id,
  t.utid IN (SELECT utid FROM _kernel_threads) AS is_kernel_thread
FROM thread AS t;
