-- Heaps and memory snapshots.

-- Classes of the objects in heap dumps.
CREATE PERFETTO VIEW heap_graph_class(
  -- Number of the row, from 0.
  id ID,
  -- Its name.
  name STRING,
  -- The name in the sources, when it was obfuscated and a map was given.
  deobfuscated_name STRING,
  -- File that it was loaded from.
  location STRING,
  -- The class it extends.
  superclass_id JOINID(heap_graph_class.id),
  -- The class loader that brought it.
  classloader_id LONG,
  -- Kind of class.
  kind STRING
)
AS
SELECT id, name, deobfuscated_name, location, superclass_id, classloader_id, kind
FROM __intrinsic_heap_graph_class;

-- Objects in heap dumps.
CREATE PERFETTO VIEW heap_graph_object(
  -- Number of the row, from 0.
  id ID,
  -- The process.
  upid JOINID(process.id),
  -- When the heap was dumped: heap_graph.ts.
  graph_sample_ts TIMESTAMP,
  -- Bytes of the object itself.
  self_size LONG,
  -- Bytes outside the heap that the object keeps alive.
  native_size LONG,
  -- Its references: rows of heap_graph_reference with this number.
  reference_set_id JOINID(heap_graph_reference.reference_set_id),
  -- Whether a root leads to it.
  reachable BOOL,
  -- Heap it lies in: app, zygote or image.
  heap_type STRING,
  -- Its class.
  type_id JOINID(heap_graph_class.id),
  -- Kind of root it is; NULL: it is none.
  root_type STRING,
  -- Steps from the nearest root; -1: not reachable.
  root_distance LONG,
  -- Its contents: row of heap_graph_object_data; NULL: not recorded.
  object_data_id LONG
)
AS
SELECT id, upid, graph_sample_ts, self_size, native_size, reference_set_id, reachable, heap_type,
  type_id, root_type, root_distance, object_data_id
FROM __intrinsic_heap_graph_object;

-- Contents of objects in heap dumps.
CREATE PERFETTO VIEW heap_graph_object_data(
  -- Number of the row, from 0.
  id ID,
  -- Its fields: rows of heap_graph_primitive with this number.
  field_set_id JOINID(heap_graph_primitive.field_set_id),
  -- Text of a string object.
  value_string STRING,
  -- For an array: type of its elements.
  array_element_type STRING,
  -- For an array: their number.
  array_element_count LONG,
  -- For an array: where its bytes are kept.
  array_data_id LONG,
  -- For an array: hash of its bytes, equal for equal contents.
  array_data_hash LONG
)
AS
SELECT id, field_set_id, value_string, array_element_type, array_element_count, array_data_id,
  array_data_hash
FROM __intrinsic_heap_graph_object_data;

-- Which object of a heap dump refers to which.
CREATE PERFETTO VIEW heap_graph_reference(
  -- Number of the row, from 0.
  id ID,
  -- Its references: rows of heap_graph_reference with this number.
  reference_set_id JOINID(heap_graph_object.reference_set_id),
  -- The object that refers.
  owner_id JOINID(heap_graph_object.id),
  -- The object that is referred to; NULL: null.
  owned_id JOINID(heap_graph_object.id),
  -- Name of the field.
  field_name STRING,
  -- Declared type of the field.
  field_type_name STRING,
  -- The name in the sources, when it was obfuscated and a map was given.
  deobfuscated_field_name STRING
)
AS
SELECT id, reference_set_id, owner_id, owned_id, field_name, field_type_name,
  deobfuscated_field_name
FROM __intrinsic_heap_graph_reference;

-- Fields of objects in heap dumps that are not references.
CREATE PERFETTO VIEW heap_graph_primitive(
  -- Number of the row, from 0.
  id ID,
  -- Its fields: rows of heap_graph_primitive with this number.
  field_set_id JOINID(heap_graph_object_data.field_set_id),
  -- Name of the field.
  field_name STRING,
  -- Type of the field; the column of that type has the value.
  field_type STRING,
  -- The value of a boolean.
  bool_value LONG,
  -- The value of a byte.
  byte_value LONG,
  -- The value of a char.
  char_value LONG,
  -- The value of a short.
  short_value LONG,
  -- The value of an int.
  int_value LONG,
  -- The value of a long.
  long_value LONG,
  -- The value of a float.
  float_value DOUBLE,
  -- The value of a double.
  double_value DOUBLE
)
AS
SELECT id, field_set_id, field_name, field_type, bool_value, byte_value, char_value, short_value,
  int_value, long_value, float_value, double_value
FROM __intrinsic_heap_graph_primitive;

-- Memory dumps of Chrome.
CREATE PERFETTO VIEW memory_snapshot(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  timestamp TIMESTAMP,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- How much was dumped.
  detail_level STRING
)
AS
SELECT id, timestamp, track_id, detail_level
FROM __intrinsic_memory_snapshot;

-- Processes within a memory dump.
CREATE PERFETTO VIEW process_memory_snapshot(
  -- Number of the row, from 0.
  id ID,
  -- The snapshot it is part of.
  snapshot_id JOINID(memory_snapshot.id),
  -- The process.
  upid JOINID(process.id)
)
AS
SELECT id, snapshot_id, upid
FROM __intrinsic_process_memory_snapshot;

-- Allocators and their parts within the dump of a process.
CREATE PERFETTO VIEW memory_snapshot_node(
  -- Number of the row, from 0.
  id ID,
  -- The process dump it is part of.
  process_snapshot_id JOINID(process_memory_snapshot.id),
  -- The node it lies in; NULL: outermost.
  parent_node_id JOINID(memory_snapshot_node.id),
  -- Names of the nodes it lies in and its own, separated by slashes.
  path STRING,
  -- Bytes of the node, with its children.
  size LONG,
  -- Bytes after taking off what others own.
  effective_size LONG,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id, process_snapshot_id, parent_node_id, path, size, effective_size, arg_set_id
FROM __intrinsic_memory_snapshot_node;

-- Which node of a memory dump owns which.
CREATE PERFETTO VIEW memory_snapshot_edge(
  -- Number of the row, from 0.
  id ID,
  -- The node that owns.
  source_node_id JOINID(memory_snapshot_node.id),
  -- The node that is owned.
  target_node_id JOINID(memory_snapshot_node.id),
  -- Who gets the bytes when several own a node: the highest.
  importance LONG
)
AS
SELECT id, source_node_id, target_node_id, importance
FROM __intrinsic_memory_snapshot_edge;

-- Dumps of Java heaps.
CREATE PERFETTO VIEW heap_graph(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The process.
  upid JOINID(process.upid),
  -- Why the heap was dumped.
  dump_reason STRING,
  -- Bytes in use; NULL: not recorded.
  heap_size LONG,
  -- Whether a part of the dump is missing.
  truncated BOOL
)
AS
SELECT id, ts, upid, dump_reason, heap_size, truncated
FROM __intrinsic_heap_graph;

-- Spans of time for which allocations of a heap were summed up.
CREATE PERFETTO VIEW heap_profile(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- End: ts + dur.
  ts_end TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The process.
  upid JOINID(process.upid),
  -- Name of the heap, for instance libc.malloc.
  heap_name STRING
)
AS
SELECT id, ts, ts_end, dur, upid, heap_name
FROM __intrinsic_heap_profile;

-- Stacks of the threads at the time of a heap dump.
CREATE PERFETTO VIEW heap_graph_thread_callsite(
  -- Number of the row, from 0.
  id ID,
  -- The dump.
  heap_graph_id JOINID(heap_graph.id),
  -- The thread.
  utid JOINID(thread.id),
  -- The innermost frame of its call stack; NULL: none.
  callsite_id JOINID(stack_profile_callsite.id)
)
AS
SELECT id, heap_graph_id, utid, callsite_id
FROM __intrinsic_heap_graph_thread_callsite;
