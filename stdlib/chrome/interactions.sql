-- What matters to who uses Chrome: starts, page loads, interactions with pages.

INCLUDE PERFETTO MODULE chrome.page_loads;
INCLUDE PERFETTO MODULE chrome.startups;
INCLUDE PERFETTO MODULE chrome.web_content_interactions;

-- All of them; scoped_id is the id in the table of the type.
CREATE PERFETTO TABLE chrome_interactions(
  -- The id in the table of its type.
  scoped_id LONG,
  -- The table that it is of.
  type STRING,
  -- Name of the interaction.
  name STRING,
  -- When the interaction began.
  ts TIMESTAMP,
  -- Duration of the interaction in nanoseconds.
  dur DURATION
) AS
SELECT id AS scoped_id, 'chrome_page_loads' AS type, 'PageLoad' AS name, navigation_start_ts AS ts, coalesce(lcp, fcp) AS dur
FROM chrome_page_loads
UNION ALL
SELECT id, 'chrome_startups', name, startup_begin_ts, coalesce(first_visible_content_ts - startup_begin_ts, 0)
FROM chrome_startups
UNION ALL
SELECT id, 'chrome_web_content_interactions', 'InteractionToFirstPaint', ts, dur
FROM chrome_web_content_interactions;
