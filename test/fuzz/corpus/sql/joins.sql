select t.name, p.name, s.ts from sched s join thread t using (utid) left join process p using (upid) where s.dur > 1000 and t.name glob 'k*' order by s.dur desc, s.ts limit 20 offset 3;
select ucpu, utid, count(*) from sched where utid in (1, 2, 3, null) group by 1, 2 having count(*) > 1 order by 3 desc;
select * from thread where tid between -1 and 9223372036854775807 or name is null or name is not 'x' union select * from thread where tid = 1.5;
