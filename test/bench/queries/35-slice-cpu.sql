include perfetto module slices.cpu_time; select count(*) from thread_slice_cpu_time;
