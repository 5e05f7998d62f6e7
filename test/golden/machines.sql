-- trace: mm-two-machines.pftrace.gz
-- Machines, and what each of them recorded.
select m.id, m.raw_id, m.sysname, m.release, m.num_cpus,
       (select count(*) from ftrace_event e join cpu c using (ucpu) where c.machine_id = m.id) as events,
       (select count(*) from process p where p.machine_id = m.id) as processes
from machine m order by m.id;
