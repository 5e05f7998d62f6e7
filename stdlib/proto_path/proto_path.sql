-- Paths of fields in the messages of a trace, as call stacks (--analyze-trace-proto-content).

-- The last step of a path: what event it is about, if that is told, the field and its type.
CREATE PERFETTO FUNCTION _proto_path_to_frame(
  -- Row of experimental_proto_path.
  path_id LONG
)
-- A stack of these texts, or NULL without such a path.
RETURNS BYTES AS
SELECT
  cat_stacks(
    'event.name:' || extract_arg(arg_set_id, 'event.name'),
    'event.category:' || extract_arg(arg_set_id, 'event.category'),
    field_name,
    field_type)
FROM experimental_proto_path
WHERE id = $path_id;

-- A whole path, from the packet on.
CREATE PERFETTO FUNCTION _proto_path_to_stack(
  -- Row of experimental_proto_path.
  path_id LONG
)
-- A stack of the texts of all steps, or NULL without such a path.
RETURNS BYTES AS
WITH RECURSIVE steps(parent_id, stack) AS (
  SELECT parent_id, _proto_path_to_frame(id)
  FROM experimental_proto_path
  WHERE id = $path_id
  UNION ALL
  SELECT around.parent_id, cat_stacks(_proto_path_to_frame(around.id), steps.stack)
  FROM steps
  JOIN experimental_proto_path AS around ON around.id = steps.parent_id
)
SELECT stack
FROM steps
WHERE parent_id IS NULL;
