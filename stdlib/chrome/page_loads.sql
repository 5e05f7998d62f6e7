-- Pages that Chrome loaded, and what of them was there when.

INCLUDE PERFETTO MODULE slices.with_context;

-- The spans of one of Chrome's metrics of page loads, by its name.
CREATE PERFETTO FUNCTION _page_load_metrics(
  event_name STRING
)
RETURNS TABLE(
  -- When the navigation began.
  ts TIMESTAMP,
  -- From there to the event.
  dur DURATION,
  -- Chrome's number of the navigation.
  navigation_id LONG,
  -- The browser's process: row of process.
  browser_upid LONG
) AS
SELECT ts, dur, extract_arg(arg_set_id, 'page_load.navigation_id') AS navigation_id, upid AS browser_upid
FROM process_slice
WHERE name = $event_name;

-- The first things painted: the loads that chrome_page_loads has.
CREATE PERFETTO VIEW _fcp_metrics AS
SELECT
  ts,
  dur,
  extract_arg(arg_set_id, 'page_load.navigation_id') AS navigation_id,
  extract_arg(arg_set_id, 'page_load.url') AS url,
  upid AS browser_upid
FROM process_slice
WHERE name = 'PageLoadMetrics.NavigationToFirstContentfulPaint';

-- Loads that painted something; one row for each report of any of the other moments. What is not the end of a paint is the start of the
-- slice that tells it.
CREATE PERFETTO TABLE chrome_page_loads(
  -- Number of the page load.
  id LONG,
  -- Chrome's number of the navigation.
  navigation_id LONG,
  -- When the navigation began.
  navigation_start_ts TIMESTAMP,
  -- From there to the first content, in nanoseconds.
  fcp LONG,
  -- When the first content was painted.
  fcp_ts TIMESTAMP,
  -- From there to the largest content, in nanoseconds.
  lcp LONG,
  -- When the largest content was painted.
  lcp_ts TIMESTAMP,
  -- When the document was read.
  dom_content_loaded_event_ts TIMESTAMP,
  -- When the page was loaded.
  load_event_ts TIMESTAMP,
  -- When the page itself said that it is loaded.
  mark_fully_loaded_ts TIMESTAMP,
  -- When the page itself said that it is visible.
  mark_fully_visible_ts TIMESTAMP,
  -- When the page itself said that it can be used.
  mark_interactive_ts TIMESTAMP,
  -- URL of the page or script.
  url STRING,
  -- The browser's process: row of process.
  browser_upid LONG
) AS
SELECT
  row_number() OVER (ORDER BY f.ts) AS id,
  f.navigation_id,
  f.ts AS navigation_start_ts,
  f.dur AS fcp,
  f.ts + f.dur AS fcp_ts,
  l.dur AS lcp,
  l.ts + l.dur AS lcp_ts,
  d.ts AS dom_content_loaded_event_ts,
  o.ts AS load_event_ts,
  ml.ts AS mark_fully_loaded_ts,
  mv.ts AS mark_fully_visible_ts,
  mi.ts AS mark_interactive_ts,
  f.url,
  f.browser_upid
FROM _fcp_metrics AS f
LEFT JOIN _page_load_metrics('PageLoadMetrics.NavigationToLargestContentfulPaint') AS l USING (navigation_id, browser_upid)
LEFT JOIN _page_load_metrics('PageLoadMetrics.NavigationToDOMContentLoadedEventFired') AS d USING (navigation_id, browser_upid)
LEFT JOIN _page_load_metrics('PageLoadMetrics.NavigationToMainFrameOnLoad') AS o USING (navigation_id, browser_upid)
LEFT JOIN _page_load_metrics('PageLoadMetrics.UserTimingMarkFullyLoaded') AS ml USING (navigation_id, browser_upid)
LEFT JOIN _page_load_metrics('PageLoadMetrics.UserTimingMarkFullyVisible') AS mv USING (navigation_id, browser_upid)
LEFT JOIN _page_load_metrics('PageLoadMetrics.UserTimingMarkInteractive') AS mi USING (navigation_id, browser_upid);
