-- How soon web pages answered clicks, keys and taps.

-- Each from the event to the first picture after it.
CREATE PERFETTO TABLE chrome_web_content_interactions(
  -- Row of slice.
  id LONG,
  -- When the interaction began.
  ts TIMESTAMP,
  -- Duration of the interaction in nanoseconds.
  dur DURATION,
  -- What was done.
  interaction_type STRING,
  -- The page's process: row of process.
  renderer_upid LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  extract_arg(s.arg_set_id, 'web_content_interaction.type') AS interaction_type,
  t.upid AS renderer_upid
FROM slice AS s
JOIN process_track AS t ON t.id = s.track_id
WHERE s.name = 'Web Interaction';
