include perfetto module linux.cpu.utilization.system; select count(*) from cpu_utilization_per_second;
