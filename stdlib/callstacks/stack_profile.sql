-- Call stacks of samples as trees, with counts.

INCLUDE PERFETTO MODULE graphs.scan;
INCLUDE PERFETTO MODULE v8.jit;

-- Frames with the first and the last of the functions that they stand for; of functions in each other, the innermost is first.
CREATE PERFETTO TABLE _callstack_spf_summary AS
SELECT f.id, f.symbol_set_id, min(s.id) AS min_symbol_id, max(s.id) AS max_symbol_id
FROM stack_profile_frame AS f
LEFT JOIN stack_profile_symbol AS s USING (symbol_set_id)
GROUP BY f.id
ORDER BY f.id;

-- Callsites with their functions; an inlined function is a row of its own. The rows of a callsite begin with its leaf.
CREATE PERFETTO TABLE _callstack_spc_raw_forest AS
SELECT
  row_number() OVER (ORDER BY c.id, s.id) - 1 AS id,
  c.id AS callsite_id,
  s.id AS symbol_id,
  iif(s.id IS f.max_symbol_id, c.parent_id, c.id) AS parent_callsite_id,
  f.id AS frame_id,
  j.jit_code_id,
  s.id IS f.min_symbol_id AS is_leaf
FROM stack_profile_callsite AS c
JOIN _callstack_spf_summary AS f ON f.id = c.frame_id
LEFT JOIN __intrinsic_jit_frame AS j ON j.frame_id = f.id
LEFT JOIN stack_profile_symbol AS s USING (symbol_set_id)
ORDER BY c.id, s.id;

-- The same as a forest with names: of code made at run time, of the symbol, deobfuscated, or of the file, demangled.
CREATE PERFETTO TABLE _callstack_spc_forest AS
SELECT
  c.id,
  iif(c.parent_callsite_id = c.callsite_id, c.id + 1, p.id) AS parent_id,
  coalesce(
    'JS: ' || iif(jf.name = '', '(anonymous)', jf.name) || ':' || jf.line || ':' || jf.col || ' [' || lower(jc.tier) || ']',
    'WASM: ' || wc.function_name || ' [' || lower(wc.tier) || ']',
    'REGEXP: ' || rc.pattern,
    'V8: ' || vc.function_name,
    'JIT: ' || code.function_name,
    demangle(coalesce(s.name, f.deobfuscated_name, f.name)),
    coalesce(s.name, f.deobfuscated_name, f.name, '[Unknown]')
  ) AS name,
  f.mapping AS mapping_id,
  s.source_file,
  coalesce(jf.line, s.line_number) AS line_number,
  coalesce(jf.col, 0) AS column_number,
  s.inlined,
  c.callsite_id,
  c.is_leaf AS is_leaf_function_in_callsite_frame
FROM _callstack_spc_raw_forest AS c
JOIN stack_profile_frame AS f ON f.id = c.frame_id
LEFT JOIN _v8_js_code AS jc USING (jit_code_id)
LEFT JOIN v8_js_function AS jf USING (v8_js_function_id)
LEFT JOIN _v8_internal_code AS vc USING (jit_code_id)
LEFT JOIN _v8_wasm_code AS wc USING (jit_code_id)
LEFT JOIN _v8_regexp_code AS rc USING (jit_code_id)
LEFT JOIN __intrinsic_jit_code AS code ON code.id = c.jit_code_id
LEFT JOIN stack_profile_symbol AS s ON s.id = c.symbol_id
LEFT JOIN (SELECT callsite_id, id FROM _callstack_spc_raw_forest WHERE is_leaf) AS p
  ON p.callsite_id = c.parent_callsite_id
ORDER BY c.id;

-- The trees that the callsites of samples stand in: (id, parent_id, callsite_id, name, mapping_name, source_file, line_number,
-- inlined, is_leaf_function_in_callsite_frame).
CREATE PERFETTO MACRO _callstacks_for_stack_profile_samples(
  -- Samples: callsite_id.
  spc_samples TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    _cfs_reached(id) AS (
      SELECT f.id
      FROM (SELECT DISTINCT callsite_id FROM $spc_samples) AS s
      JOIN _callstack_spc_forest AS f USING (callsite_id)
      WHERE f.is_leaf_function_in_callsite_frame
      UNION
      SELECT f.parent_id
      FROM _cfs_reached AS r
      JOIN _callstack_spc_forest AS f USING (id)
      WHERE f.parent_id IS NOT NULL
    )
  SELECT
    f.id,
    f.parent_id,
    f.callsite_id,
    f.name,
    m.name AS mapping_name,
    f.source_file,
    f.line_number,
    f.inlined,
    f.is_leaf_function_in_callsite_frame
  FROM _cfs_reached AS r
  JOIN _callstack_spc_forest AS f USING (id)
  JOIN stack_profile_mapping AS m ON m.id = f.mapping_id
  ORDER BY f.id
);

-- The same with the value of the samples that stand on each: (id, parent_id, name, mapping_name, source_file, line_number,
-- self_value).
CREATE PERFETTO MACRO _callstacks_for_callsites_weighted(
  -- Samples: callsite_id, value.
  samples TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  WITH
    _cfc_values AS MATERIALIZED (SELECT callsite_id, sum(value) AS value FROM $samples GROUP BY callsite_id)
  SELECT
    c.id,
    c.parent_id,
    c.name,
    c.mapping_name,
    c.source_file,
    c.line_number,
    iif(c.is_leaf_function_in_callsite_frame, coalesce(v.value, 0), 0) AS self_value
  FROM _callstacks_for_stack_profile_samples!(_cfc_values) AS c
  LEFT JOIN _cfc_values AS v USING (callsite_id)
  ORDER BY c.id
);

-- The same with how many samples stand on each: (id, parent_id, name, mapping_name, source_file, line_number, self_count).
CREATE PERFETTO MACRO _callstacks_for_callsites(
  -- Samples: callsite_id.
  samples TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT id, parent_id, name, mapping_name, source_file, line_number, self_value AS self_count
  FROM _callstacks_for_callsites_weighted!((SELECT callsite_id, 1 AS value FROM $samples))
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
