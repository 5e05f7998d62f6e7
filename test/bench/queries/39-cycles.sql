include perfetto module linux.cpu.utilization.process; select count(*) from cpu_cycles_per_process;
