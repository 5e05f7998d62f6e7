select * from (select ucpu, utid, ts, dur, row_number() over (partition by ucpu order by dur desc, ts) as r from sched) where r <= 5 order by ucpu, r;
