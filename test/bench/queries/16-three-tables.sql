select t.name, p.name, count(*), sum(s.dur) from sched s join thread t using (utid) left join process p using (upid) group by t.name, p.name order by 4 desc limit 20;
