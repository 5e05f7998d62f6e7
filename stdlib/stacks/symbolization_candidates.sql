-- Frames that have no name yet.

-- The name under which Breakpad keeps a module's symbols: its build id as 33 hexadecimal digits.
CREATE PERFETTO FUNCTION _to_breakpad_module(
  mapping STRING,
  build_id STRING
)
RETURNS STRING AS
SELECT iif($build_id IS NULL OR $build_id = '', NULL, upper(substr($build_id || '00000000000000000000000000000000', 1, 32)) || '0');

-- Frames without symbols, once each.
CREATE PERFETTO TABLE _stacks_symbolization_candidates(
  upid JOINID(process.id),
  module STRING,
  build_id STRING,
  rel_pc LONG,
  breakpad_module_id STRING
) AS
SELECT DISTINCT
  NULL AS upid,
  m.name AS module,
  m.build_id,
  f.rel_pc,
  _to_breakpad_module(m.name, m.build_id) AS breakpad_module_id
FROM stack_profile_frame AS f
JOIN stack_profile_mapping AS m ON m.id = f.mapping
WHERE f.symbol_set_id IS NULL AND m.name != '' AND coalesce(f.deobfuscated_name, '') = '';
