-- GPU contexts of the trace, as the graphics API made them.

-- A GPU context and the process that owns it.
CREATE PERFETTO VIEW gpu_context(
  -- Number of the row.
  id ID,
  -- The driver's number of the context.
  context_id LONG,
  -- Process that made it.
  pid LONG,
  -- Graphics API, such as OPEN_GL or VULKAN.
  api STRING
) AS
SELECT id, context_id, pid, api
FROM __intrinsic_gpu_context;
