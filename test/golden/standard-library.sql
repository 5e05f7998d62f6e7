-- trace: linux-sched.pftrace
-- The library on a real recording, each answer next to one that is added up by hand.
include perfetto module *;
select
  (select sum(runtime) from cpu_cycles_per_thread) as runtime,
  (select sum(dur) from sched join thread using (utid) where dur > 0 and not is_idle) as by_hand;
select
  (select sum(cpu_time) from thread_slice_cpu_time) as cpu_time,
  (select sum(min(s.ts + s.dur, r.ts + r.dur) - max(s.ts, r.ts)) from thread_slice s join sched r using (utid)
   where s.dur > 0 and r.dur > 0 and s.ts < r.ts + r.dur and r.ts < s.ts + s.dur) as by_hand;
select
  (select sum(self_dur) from slice_self_dur) as self_dur,
  (select sum(iif(dur = -1, trace_end() - ts, dur)) from slice where depth = 0) as by_hand;
select
  (select max(runnable_thread_count) from sched_runnable_thread_count) as most_runnable,
  (select max(n) from (select (select count(*) from thread_state b where b.state in ('R', 'R+') and b.ts <= a.ts
   and (b.dur = -1 or b.ts + b.dur > a.ts)) as n from thread_state a where a.state in ('R', 'R+') and a.id % 20 = 0)) <=
  (select max(runnable_thread_count) from sched_runnable_thread_count) as not_less_than_samples;
select
  (select sum(latency_dur) from sched_latency_for_running_interval) > 0 as waited,
  (select count(*) from sched_latency_for_running_interval l join thread_state r on r.id = l.runnable_latency_id
   where r.state not in ('R', 'R+') or r.utid != l.utid) as wrong;
select
  (select count(*) from memory_rss_and_swap_per_process where rss != anon_rss + file_rss + shmem_rss) as wrong_rss,
  (select count(*) from linux_kernel_threads) > 0 as kernel_threads,
  (select count(*) from machine_overview) as machines,
  dataloss_is_clean() as clean;
