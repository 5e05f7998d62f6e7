-- CPUs and what ran on them.

-- The number of a CPU that is unique over all machines.
CREATE PERFETTO MACRO _ucpu(
  -- Row of machine.
  machine_id Expr,
  -- Number of the CPU on its machine.
  cpu Expr
)
RETURNS Expr
AS
(($machine_id) * 4096 + ($cpu));

-- The row of machine that a CPU is part of.
CREATE PERFETTO MACRO _machine_of_ucpu(
  -- Number of the CPU, unique over all machines.
  ucpu Expr
)
RETURNS Expr
AS
(($ucpu) / 4096);

-- CPUs of all machines.
CREATE PERFETTO VIEW cpu(
  -- The same as ucpu.
  id ID,
  -- Number of the CPU, unique over all machines.
  ucpu ID,
  -- Its number on its machine.
  cpu LONG,
  -- Group of alike CPUs, by capacity; NULL: not known.
  cluster_id LONG,
  -- Model of the processor, from /proc/cpuinfo.
  processor STRING,
  -- The machine it is part of.
  machine_id JOINID(machine.id),
  -- Relative computing power, 1024 for the strongest of the machine; NULL: not known.
  capacity LONG,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id, id AS ucpu, cpu, cluster_id, processor, machine_id, capacity, arg_set_id
FROM __intrinsic_cpu
WHERE cpu IS NOT NULL;

-- Frequencies that the CPUs can run at.
CREATE PERFETTO VIEW cpu_available_frequencies(
  -- Number of the row, from 0.
  id ID,
  -- Number of the CPU; the same as ucpu, so that it is unique over all machines.
  cpu LONG,
  -- Frequency in kHz.
  freq LONG,
  -- Row of cpu: a CPU of one machine.
  ucpu LONG
)
AS
SELECT id, ucpu AS cpu, freq, ucpu
FROM __intrinsic_cpu_freq;

-- Which thread ran on which CPU and when: the most used table of a kernel trace. Idle time is the thread with tid 0.
CREATE PERFETTO VIEW sched(
  -- Number of the row, from 0.
  id ID,
  -- When the thread got the CPU.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- Number of the CPU; the same as ucpu, so that it is unique over all machines.
  cpu LONG,
  -- The thread.
  utid JOINID(thread.id),
  -- Why the thread left the CPU: R it was preempted, S sleeps, D waits for I/O or a lock …
  end_state STRING,
  -- Priority in the kernel, 0 to 139; below 100 is real time.
  priority LONG,
  -- Row of cpu: a CPU of one machine.
  ucpu LONG,
  -- End: ts + dur.
  ts_end LONG
)
AS
SELECT id, ts, dur, ucpu AS cpu, utid, end_state, priority, ucpu, ts + dur AS ts_end
FROM __intrinsic_sched_slice;

-- The same as sched without ts_end.
CREATE PERFETTO VIEW sched_slice(
  -- Number of the row, from 0.
  id ID,
  -- When the thread got the CPU.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- Number of the CPU; the same as ucpu, so that it is unique over all machines.
  cpu LONG,
  -- The thread.
  utid JOINID(thread.id),
  -- Why the thread left the CPU: R it was preempted, S sleeps, D waits for I/O or a lock …
  end_state STRING,
  -- Priority in the kernel, 0 to 139; below 100 is real time.
  priority LONG,
  -- Row of cpu: a CPU of one machine.
  ucpu LONG
)
AS
SELECT id, ts, dur, ucpu AS cpu, utid, end_state, priority, ucpu
FROM __intrinsic_sched_slice;

-- What each thread was doing at any time: running, runnable, sleeping, and who woke it up.
CREATE PERFETTO VIEW thread_state(
  -- Number of the row, from 0.
  id ID,
  -- When the state began.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- For Running: the CPU; else NULL.
  cpu LONG,
  -- The thread.
  utid JOINID(thread.id),
  -- Running, R runnable, R+ runnable after preemption, S sleeping, D uninterruptible, I idle, X ended …
  state STRING,
  -- For D: whether it waits for I/O; NULL: not known.
  io_wait LONG,
  -- For D: kernel function in which it waits.
  blocked_function STRING,
  -- The thread that woke it up.
  waker_utid JOINID(thread.id),
  -- What the waking thread was doing; NULL: not known, or an interrupt.
  waker_id JOINID(thread_state.id),
  -- Whether it was woken from an interrupt; NULL: not known.
  irq_context LONG,
  -- For Running: the CPU; else NULL.
  ucpu JOINID(cpu.id)
)
AS
SELECT id, ts, dur, ucpu AS cpu, utid, state, io_wait, blocked_function, waker_utid, waker_id,
  irq_context, ucpu
FROM __intrinsic_thread_state;
