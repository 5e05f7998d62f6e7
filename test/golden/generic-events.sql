-- trace: linux-generic-events.pftrace.gz
-- Events that bring their own description.
select name, count(*) as n from ftrace_event group by name order by n desc, name limit 20;
