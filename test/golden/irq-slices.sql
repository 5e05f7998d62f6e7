-- trace: linux-sched.pftrace
-- Interrupt handlers are slices on a track of their cpu.
select s.name, s.depth, count(*) as n, sum(s.dur) as total, min(s.ts) as first
from slice s join track t on t.id = s.track_id group by s.name, s.depth order by n desc, s.name limit 20;
