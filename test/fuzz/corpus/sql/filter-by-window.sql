select count(*) filter (where lag(ts) over (order by ts) > 2) from sched; select id from sched order by sum(dur);
