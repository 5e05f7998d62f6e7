-- Which threads are the kernel's, for a timeline.

INCLUDE PERFETTO MODULE linux.threads;
INCLUDE PERFETTO MODULE viz.summary.trace;

-- Only Linux has threads of its kernel: elsewhere process 2 is a process as any other.
CREATE PERFETTO TABLE _kernel_threads AS
SELECT utid, upid
FROM linux_kernel_threads
WHERE _is_linux_machine(machine_id);

-- All threads: the columns of thread and is_kernel_thread.
CREATE PERFETTO TABLE _threads_with_kernel_flag AS
SELECT
  t.id,
  t.utid,
  t.upid,
  t.tid,
  t.name,
  t.is_main_thread,
  t.is_idle,
  t.machine_id,
  t.utid IN (SELECT utid FROM _kernel_threads) AS is_kernel_thread
FROM thread AS t;
