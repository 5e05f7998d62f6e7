-- Instructions that ARM's trace unit saw (ETM).
--
-- Recordings with ETM are stored and not decoded here: that needs the program's code and a decoder of its own.

-- The instructions of a chunk, by file and address: the form that symbolizers take. No rows.
CREATE PERFETTO FUNCTION _linux_perf_etm_metadata(
  -- The chunk.
  trace_id LONG
)
RETURNS TABLE(
  -- File with the instruction.
  file_name STRING,
  -- Its address in the file.
  rel_pc LONG
) AS
SELECT m.name AS file_name, m.start AS rel_pc FROM stack_profile_mapping AS m WHERE m.id = $trace_id AND 0;
