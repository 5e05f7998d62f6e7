include perfetto module sched.thread_executing_span; select count(*) from _wakeup_graph;
