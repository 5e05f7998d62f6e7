select sum(row_number() over (order by id)) from sched;
