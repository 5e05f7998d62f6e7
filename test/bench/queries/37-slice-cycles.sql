include perfetto module linux.cpu.utilization.slice; select count(*) from cpu_cycles_per_thread_slice;
