-- trace: mm-two-machines.pftrace.gz
-- The library's modules about several machines and their clocks.
include perfetto module machines.*;
include perfetto module clocks.*;
select machine_id, num_cpus, sched_count, ftrace_event_count from machine_overview;
select machine_id, cpus, busy_dur, round(utilization, 3) as utilization from machine_cpu_utilization;
select machine_id, process_name, cpu_dur from machine_cpu_time_by_process order by cpu_dur desc limit 3;
select machine_id, direction, count(*) as packets from machine_network_packets group by 1, 2;
select from_machine_id, to_machine_id, count(*) as pairs, count(distinct send_id) as sends, count(distinct receive_id) as receipts,
  min(one_way_dur) >= 0 as in_order, max(one_way_dur) <= 1000000000 as within_a_second
from machine_network_one_way group by 1, 2;
select machine_id, peer_machine_id, count(*) > 0 as any, min(dur = peer_dur + network_dur) as adds_up, min(network_dur) >= 0 as positive
from machine_network_round_trips group by 1, 2;
select machine_id, count(*) as clocks, min(snapshot_count) as snapshots from clock_quality group by 1;
select machine_id, clock_name, count(*) as offsets from clock_offsets group by 1, 2 order by 1, 2 limit 4;
select name, value from clock_problems;
