select count(*), max(gap), avg(gap) from (select ts - lag(ts) over (partition by utid order by ts) as gap from sched);
