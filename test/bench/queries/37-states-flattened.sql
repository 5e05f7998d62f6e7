include perfetto module sched.thread_state_flattened; select count(*) from _thread_state_flattened;
