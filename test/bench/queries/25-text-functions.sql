select upper(substr(t.name, 1, 5)) as n, count(*), max(s.dur) from sched s join thread t using (utid) group by 1 order by 2 desc limit 20;
