-- Call stacks of samples as trees, with counts.

INCLUDE PERFETTO MODULE graphs.scan;

-- A name for each frame: the deobfuscated one, the demangled one, or the one of its file.
CREATE PERFETTO TABLE _callstack_spf_summary AS
SELECT
  f.id,
  coalesce(f.deobfuscated_name, demangle(f.name), f.name, 'unknown') AS name,
  m.name AS mapping_name,
  f.symbol_set_id
FROM stack_profile_frame AS f
LEFT JOIN stack_profile_mapping AS m ON m.id = f.mapping;

-- Callsites with their frames; an inlined function is a frame of its own.
CREATE PERFETTO TABLE _callstack_spc_raw_forest AS
SELECT
  c.id AS callsite_id,
  c.parent_id AS parent_callsite_id,
  coalesce(s.name, f.name) AS name,
  f.mapping_name,
  s.source_file,
  s.line_number,
  coalesce(s.inlined, 0) AS inlined,
  s.id AS symbol_id,
  row_number() OVER (PARTITION BY c.id ORDER BY s.id DESC) AS place,
  count() OVER (PARTITION BY c.id) AS places
FROM stack_profile_callsite AS c
JOIN _callstack_spf_summary AS f ON f.id = c.frame_id
LEFT JOIN stack_profile_symbol AS s USING (symbol_set_id);

-- The same as a forest with numbers of its own: (id, parent_id, callsite_id, name …). A callsite's last row is its leaf.
CREATE PERFETTO TABLE _callstack_spc_forest AS
WITH numbered AS (
  SELECT *, row_number() OVER (ORDER BY callsite_id, place) - 1 AS id FROM _callstack_spc_raw_forest
)
SELECT
  n.id,
  iif(
    n.place > 1,
    n.id - 1,
    (SELECT p.id FROM numbered AS p WHERE p.callsite_id = n.parent_callsite_id AND p.place = p.places)
  ) AS parent_id,
  n.callsite_id,
  n.name,
  n.mapping_name,
  n.source_file,
  n.line_number,
  n.inlined,
  n.place = n.places AS is_leaf_function_in_callsite_frame
FROM numbered AS n
ORDER BY n.id;

-- The trees of the callsites that samples stand on, with the value of each: (id, parent_id, callsite_id, name,
-- mapping_name, source_file, line_number, self_value).
CREATE PERFETTO MACRO _callstacks_for_callsites_weighted(
  -- Samples: callsite_id, value.
  samples TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _cfc_values AS (
      SELECT callsite_id, sum(value) AS value FROM $samples WHERE callsite_id IS NOT NULL GROUP BY callsite_id
    ),
    _cfc_reached(id) AS (
      SELECT f.id
      FROM _cfc_values AS v
      JOIN _callstack_spc_forest AS f USING (callsite_id)
      UNION
      SELECT f.parent_id
      FROM _cfc_reached AS r
      JOIN _callstack_spc_forest AS f USING (id)
      WHERE f.parent_id IS NOT NULL
    )
  SELECT
    f.id,
    f.parent_id,
    f.callsite_id,
    f.name,
    f.mapping_name,
    f.source_file,
    f.line_number,
    f.inlined,
    f.is_leaf_function_in_callsite_frame,
    iif(f.is_leaf_function_in_callsite_frame, coalesce(v.value, 0), 0) AS self_value
  FROM _cfc_reached AS r
  JOIN _callstack_spc_forest AS f USING (id)
  LEFT JOIN _cfc_values AS v USING (callsite_id)
  ORDER BY f.id
);

-- The same where each sample counts as one: self_count.
CREATE PERFETTO MACRO _callstacks_for_callsites(
  -- Samples: callsite_id.
  samples TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT
    id, parent_id, callsite_id, name, mapping_name, source_file, line_number, inlined,
    is_leaf_function_in_callsite_frame, self_value AS self_count
  FROM _callstacks_for_callsites_weighted!((SELECT callsite_id, 1 AS value FROM $samples))
);

CREATE PERFETTO MACRO _callstacks_for_stack_profile_samples(
  -- Samples: callsite_id.
  spc_samples TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT * FROM _callstacks_for_callsites!($spc_samples)
);

-- What stands below each node, itself included: (id, cumulative_count).
CREATE PERFETTO MACRO _callstacks_self_to_cumulative(
  -- Nodes: id, parent_id, self_count.
  callstacks TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT a.*
  FROM _graph_aggregating_scan!(
    (SELECT id AS source_node_id, parent_id AS dest_node_id FROM $callstacks WHERE parent_id IS NOT NULL),
    (SELECT id, self_count AS cumulative_count FROM $callstacks),
    (cumulative_count),
    (SELECT id, sum(cumulative_count) AS cumulative_count FROM $table GROUP BY id)
  ) AS a
);
