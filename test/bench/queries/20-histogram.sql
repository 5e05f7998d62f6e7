select dur / 1000000 as ms, count(*), count(distinct utid) from sched where dur > 0 group by 1 order by 1 limit 50;
