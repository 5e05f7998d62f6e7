include perfetto module sched.latency; select count(*) from sched_latency_for_running_interval;
