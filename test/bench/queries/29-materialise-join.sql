create perfetto table named as select s.ts, s.dur, s.ucpu, t.name from sched s join thread t using (utid) where s.dur > 0; select count(*), sum(dur) from named;
