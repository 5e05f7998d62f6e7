-- trace: mm-two-machines.pftrace.gz
-- Gaps between spans, and spans of trees laid flat.
include perfetto module intervals.fill_gaps;
include perfetto module intervals.overlap;
create perfetto table span as
select trace_start() + 10 as ts, 5 as dur, 1 as g, 'a' as d
union all select trace_start() + 20, 5, 1, 'b'
union all select trace_start() + 12, 2, 2, 'c'
union all select null, null, 3, null;
select ts - trace_start() as ts, trace_end() - ts - dur as to_end, g, d from _intervals_fill_gaps!((g), (d), span);
select ts - trace_start() as ts, trace_end() - ts - dur as to_end, d from _intervals_fill_gaps!((NULL), (d), span);
select g, d, dur = trace_end() - trace_start() as whole from _intervals_fill_gaps!((g), (d), (select * from span where 0));
select has_overlaps from _intervals_overlap_in_table!(span);
select has_overlaps from _intervals_overlap_in_table!((select * from span where g = 1));
create perfetto table root as
select 1 as id, 0 as ts, 100 as dur, 7 as k union all select 2, 200, 50, 7 union all select 3, 300, 0, 7;
create perfetto table child as
select 1 as root_id, 11 as id, 1 as parent_id, 10 as ts, 50 as dur, 7 as k
union all select 1, 12, 11, 10, 20, 7 union all select 1, 13, 11, 40, 20, 7 union all select 1, 14, 13, 50, 0, 7;
select * from _intervals_merge_root_and_children!(root, child);
select * from _intervals_flatten!(_intervals_merge_root_and_children!(root, child));
select * from _intervals_merge_root_and_children_by_intersection!(
  root,
  (select id, nullif(parent_id, 1) as parent_id, ts, dur, k from child union all select 20, null, 90, 120, 7),
  k
);
