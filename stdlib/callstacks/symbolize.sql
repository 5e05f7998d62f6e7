-- Names for frames that have none.

-- The frames of the table with the names that the trace has for them: (frame_id, name, source_file, line_number).
CREATE PERFETTO MACRO _callstack_frame_symbolize(
  -- Frames: frame_id.
  frames TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT x.frame_id, coalesce(s.name, f.name) AS name, s.source_file, s.line_number
  FROM $frames AS x
  JOIN stack_profile_frame AS f ON f.id = x.frame_id
  LEFT JOIN stack_profile_symbol AS s USING (symbol_set_id)
);
