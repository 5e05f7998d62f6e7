include perfetto module machines.utilization; select count(*) from machine_cpu_utilization;
