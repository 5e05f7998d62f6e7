INCLUDE PERFETTO MODULE intervals.intersect; INCLUDE PERFETTO MODULE graphs.search;
CREATE VIRTUAL TABLE j USING span_outer_join(sched PARTITIONED utid, thread_state PARTITIONED utid);
SELECT ts, id_0, id_1 FROM _interval_intersect!(((SELECT id, ts, dur, ucpu FROM sched WHERE dur > 0), (SELECT id, ts, dur, ucpu FROM sched WHERE dur > 0)), (ucpu));
SELECT node_id FROM graph_reachable_dfs!((SELECT 1 AS source_node_id, 2 AS dest_node_id), (SELECT 1 AS node_id));
CREATE VIRTUAL TABLE s USING __intrinsic_slice_mipmap((SELECT id, ts, dur, 0 AS depth FROM sched)); SELECT * FROM s(0, 100000000000, 1000000000);
SELECT ts FROM __intrinsic_window(0, 100, 7);
SELECT regexp('(a|b)*c{2,3}', 'abcc'), regexp_replace_simple('aab', 'a*?', '$&'), str_split('a,b', ',', 1), to_ftrace(0);
SELECT id, layout_depth FROM experimental_slice_layout('1,2,3');
SELECT * FROM experimental_flat_slice(0, 1000000000000);
