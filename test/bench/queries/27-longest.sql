select s.ts, s.dur, t.name from sched s join thread t using (utid) where t.name not like 'swapper%' order by s.dur desc, s.id limit 20;
