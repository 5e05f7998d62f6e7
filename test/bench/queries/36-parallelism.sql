include perfetto module sched.thread_level_parallelism; select count(*) from sched_runnable_thread_count;
