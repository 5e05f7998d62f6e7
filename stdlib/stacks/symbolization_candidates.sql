-- Frames that have no name yet, of the stacks that samples and allocations stand on.

INCLUDE PERFETTO MODULE stacks.cpu_profiling;

-- The name under which Breakpad keeps the symbols of Chrome's libraries; NULL for others. The first eight bytes of the build id
-- are read as numbers of four, two and two bytes, the next eight as they are.
CREATE PERFETTO FUNCTION _to_breakpad_module(
  mapping STRING,
  build_id STRING
)
RETURNS STRING AS
SELECT
  substr($build_id, 7, 2) || substr($build_id, 5, 2) || substr($build_id, 3, 2) || substr($build_id, 1, 2)
  || substr($build_id, 11, 2) || substr($build_id, 9, 2)
  || substr($build_id, 15, 2) || substr($build_id, 13, 2)
  || substr($build_id, 17, 16)
  || '0'
WHERE
  length($build_id) >= 40
  AND (
    $mapping GLOB '*libmonochrome_64.so'
    OR $mapping GLOB '*libchrome.so'
    OR $mapping GLOB '*libmonochrome.so'
    OR $mapping GLOB '*libwebviewchromium.so'
    OR $mapping GLOB '*libchromium_android_linker.so'
  );

-- Frames without symbols, once for each process.
CREATE PERFETTO TABLE _stacks_symbolization_candidates(
  upid JOINID(process.id),
  module STRING,
  build_id STRING,
  rel_pc LONG,
  breakpad_module_id STRING
) AS
WITH RECURSIVE
  leaves AS (
    SELECT t.upid, s.callsite_id FROM cpu_profiling_samples AS s JOIN thread AS t USING (utid)
    UNION
    SELECT upid, callsite_id FROM heap_profile_allocation
  ),
  callers(upid, callsite_id) AS (
    SELECT s.upid, c.parent_id FROM leaves AS s JOIN stack_profile_callsite AS c ON c.id = s.callsite_id
    UNION
    SELECT s.upid, c.parent_id FROM callers AS s JOIN stack_profile_callsite AS c ON c.id = s.callsite_id
  ),
  used AS (
    SELECT upid, callsite_id, 0 AS is_leaf FROM callers
    UNION ALL
    SELECT upid, callsite_id, 1 FROM leaves
  )
SELECT
  u.upid,
  m.name AS module,
  m.build_id,
  f.rel_pc,
  _to_breakpad_module(m.name, m.build_id) AS breakpad_module_id
FROM used AS u
JOIN stack_profile_callsite AS c ON c.id = u.callsite_id
JOIN stack_profile_frame AS f ON f.id = c.frame_id
JOIN stack_profile_mapping AS m ON m.id = f.mapping
WHERE f.symbol_set_id IS NULL AND m.build_id != ''
GROUP BY u.upid, m.id, f.rel_pc
ORDER BY min(u.is_leaf);
