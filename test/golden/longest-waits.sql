-- trace: mm-two-machines.pftrace.gz
-- Threads that waited longest for a cpu.
select t.machine_id, t.tid, t.name, p.name as process, count(*) as waits, sum(s.dur) as total, max(s.dur) as longest
from thread_state s join thread t using (utid) left join process p using (upid)
where s.state in ('R', 'R+') and s.dur > 0 group by s.utid order by total desc limit 12;
