select utid, ts, sum(dur) over (partition by utid order by ts) as running from sched order by running desc limit 10;
