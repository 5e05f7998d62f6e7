-- Heaps and memory snapshots.

CREATE VIEW heap_graph_class AS
SELECT id, name, deobfuscated_name, location, superclass_id, classloader_id, kind
FROM __intrinsic_heap_graph_class;

CREATE VIEW heap_graph_object AS
SELECT id, upid, graph_sample_ts, self_size, native_size, reference_set_id, reachable, heap_type,
  type_id, root_type, root_distance, object_data_id
FROM __intrinsic_heap_graph_object;

CREATE VIEW heap_graph_object_data AS
SELECT id, field_set_id, value_string, array_element_type, array_element_count, array_data_id,
  array_data_hash
FROM __intrinsic_heap_graph_object_data;

CREATE VIEW heap_graph_reference AS
SELECT id, reference_set_id, owner_id, owned_id, field_name, field_type_name,
  deobfuscated_field_name
FROM __intrinsic_heap_graph_reference;

CREATE VIEW heap_graph_primitive AS
SELECT id, field_set_id, field_name, field_type, bool_value, byte_value, char_value, short_value,
  int_value, long_value, float_value, double_value
FROM __intrinsic_heap_graph_primitive;

CREATE VIEW memory_snapshot AS
SELECT id, timestamp, track_id, detail_level
FROM __intrinsic_memory_snapshot;

CREATE VIEW process_memory_snapshot AS
SELECT id, snapshot_id, upid
FROM __intrinsic_process_memory_snapshot;

CREATE VIEW memory_snapshot_node AS
SELECT id, process_snapshot_id, parent_node_id, path, size, effective_size, arg_set_id
FROM __intrinsic_memory_snapshot_node;

CREATE VIEW memory_snapshot_edge AS
SELECT id, source_node_id, target_node_id, importance
FROM __intrinsic_memory_snapshot_edge;

CREATE VIEW heap_graph AS
SELECT id, ts, upid, dump_reason, heap_size, truncated
FROM __intrinsic_heap_graph;

CREATE VIEW heap_profile AS
SELECT id, ts, ts_end, dur, upid, heap_name
FROM __intrinsic_heap_profile;

CREATE VIEW heap_graph_thread_callsite AS
SELECT id, heap_graph_id, utid, callsite_id
FROM __intrinsic_heap_graph_thread_callsite;
