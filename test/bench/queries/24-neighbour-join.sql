select count(*) from sched a join sched b on a.utid = b.utid and b.ts = a.ts + a.dur;
