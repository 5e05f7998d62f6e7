-- trace: sdk.pftrace
select s.ts, s.dur, s.depth, s.category, s.name, t.name as thread, p.name as parent
from slice s join thread_track k on s.track_id = k.id join thread t using (utid) left join slice p on s.parent_id = p.id
order by s.ts limit 20;
select k.name as track, k.type, count(*) from slice s join track k on s.track_id = k.id group by 1, 2 order by 1, 2;
select a.key, a.value_type, count(*) as n, min(a.display_value) as least
from slice s join args a using (arg_set_id) group by 1, 2 order by 3 desc, 1 limit 25;
select extract_arg(arg_set_id, 'debug.argument_11') as x, name from slice where x is not null order by ts limit 5;
select k.name, k.unit, count(*), sum(c.value) from counter c join counter_track k on c.track_id = k.id group by 1, 2 order by 1;
select name, value from stats where severity in ('error', 'data_loss') and value != 0;
