select utid, percentile(dur, 50), percentile(dur, 99) from sched where dur > 0 group by utid order by utid limit 50;
