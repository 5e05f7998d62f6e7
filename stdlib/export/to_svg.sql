-- Timelines as SVG pictures: slices, states of threads and counters, one below the other, to scale.
--
-- export_to_svg() draws the threads of the whole trace or of a part. The macros draw any rows: a picture for each value of
-- one column, in it a track for each value of another, ordered by a third. Links and explanations are in the picture.

-- A text where XML wants one, also within quotes.
CREATE PERFETTO FUNCTION _escape_xml(
  -- The text.
  text STRING
)
RETURNS STRING AS
SELECT replace(replace(replace(replace($text, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;');

-- A time as people write it: "1.5ms".
CREATE PERFETTO FUNCTION _format_duration(
  -- Duration in nanoseconds.
  dur DURATION
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $dur >= 1000000000 THEN printf('%.1fs', $dur / 1e9)
    WHEN $dur >= 1000000 THEN printf('%.1fms', $dur / 1e6)
    WHEN $dur >= 1000 THEN printf('%.1fμs', $dur / 1e3)
    ELSE $dur || 'ns'
  END;

-- A number as people write it: "2.50M".
CREATE PERFETTO FUNCTION _format_large_number(
  -- The number.
  value DOUBLE
)
RETURNS STRING AS
SELECT
  CASE
    WHEN abs($value) >= 1e12 THEN printf('%.2fT', $value / 1e12)
    WHEN abs($value) >= 1e9 THEN printf('%.2fG', $value / 1e9)
    WHEN abs($value) >= 1e6 THEN printf('%.2fM', $value / 1e6)
    WHEN abs($value) >= 1e3 THEN printf('%.2fK', $value / 1e3)
    ELSE printf('%.2f', $value)
  END;

-- Height of a row of slices in a picture of a width, in pixels.
CREATE PERFETTO FUNCTION _row_height(
  -- Width of the picture.
  max_width LONG
)
RETURNS LONG AS
SELECT max(2, CAST($max_width * 0.008 AS INT));

-- Height of a counter's curve.
CREATE PERFETTO FUNCTION _counter_height(
  -- Width of the picture.
  max_width LONG
)
RETURNS LONG AS
SELECT CAST(_row_height($max_width) * 1.5 AS INT);

-- One of twelve light colours; the same name has the same one in all pictures.
CREATE PERFETTO FUNCTION _slice_color(
  -- Name of the slice.
  name STRING
)
RETURNS STRING AS
SELECT printf('hsl(%d,45%%,78%%)', (hash(coalesce($name, '')) & 0x7fffffffffffffff) % 12 * 30);

-- The colour of a thread's state: running green, waiting for a CPU light green, for a disk orange, for something else in the
-- kernel red, sleeping grey.
CREATE PERFETTO FUNCTION _state_color(
  -- The state, as the kernel writes it.
  state STRING,
  -- Whether it waits for input or output.
  io_wait LONG
)
RETURNS STRING AS
SELECT
  CASE
    WHEN lower($state) = 'running' THEN '#2e7d32'
    WHEN $state IN ('R', 'R+') THEN '#9ccc65'
    WHEN $io_wait THEN '#ff9800'
    WHEN $state GLOB 'D*' OR $state GLOB 'U*' THEN '#b55a55'
    WHEN $state GLOB 'Z*' OR $state GLOB 'X*' THEN '#7e57c2'
    WHEN $state GLOB 'T*' OR $state GLOB 't*' THEN '#f9731a'
    ELSE '#a5a5a5'
  END;

-- As much of a text as a width in pixels has room for.
CREATE PERFETTO FUNCTION _fit_text(
  -- The text.
  text STRING,
  -- The width.
  available_width DOUBLE
)
RETURNS STRING AS
SELECT
  CASE
    WHEN $available_width < 12 THEN ''
    WHEN length($text) * 6.5 <= $available_width THEN $text
    WHEN $available_width < 25 THEN substr($text, 1, CAST($available_width / 6.5 AS INT))
    ELSE substr($text, 1, CAST(($available_width - 18) / 6.5 AS INT)) || '...'
  END;

-- A rectangle with an explanation that shows up under the pointer, a link (or NULL) and what stands in front of it.
CREATE PERFETTO FUNCTION _svg_rect(
  -- Left edge.
  x DOUBLE,
  -- Upper edge.
  y DOUBLE,
  -- Width in pixels.
  width DOUBLE,
  -- Height in pixels.
  height DOUBLE,
  -- Colour to fill with.
  fill STRING,
  -- The explanation.
  title STRING,
  -- The link.
  href STRING,
  -- SVG in front.
  text_content STRING
)
RETURNS STRING AS
SELECT
  coalesce('<a href="' || _escape_xml($href) || '" target="_blank">', '')
  || printf('<rect x="%g" y="%g" width="%g" height="%g" fill="%s">', $x, $y, $width, $height, $fill)
  || coalesce('<title>' || _escape_xml($title) || '</title>', '')
  || '</rect>'
  || coalesce($text_content, '')
  || iif($href IS NULL, '', '</a>');

-- A slice with its name, as far as there is room.
CREATE PERFETTO FUNCTION _slice_to_svg(
  -- Left edge.
  x_pixel DOUBLE,
  -- Upper edge.
  y_pixel DOUBLE,
  -- Width in pixels.
  width_pixel DOUBLE,
  -- Height in pixels.
  height_pixel DOUBLE,
  -- Its name.
  name STRING,
  -- How long it took.
  dur DURATION,
  -- The link.
  href STRING,
  -- It is drawn at least so wide, in pixels.
  min_pixel_width LONG
)
RETURNS STRING AS
SELECT
  _svg_rect(
    $x_pixel, $y_pixel, max($width_pixel, $min_pixel_width), $height_pixel, _slice_color($name),
    coalesce($name, '?') || ' (' || _format_duration($dur) || ')', $href,
    iif(
      $width_pixel >= 15,
      printf(
        '<text x="%g" y="%g" text-anchor="middle" font-size="11">%s</text>',
        $x_pixel + $width_pixel / 2, $y_pixel + $height_pixel / 2, _escape_xml(_fit_text(coalesce($name, '?'), $width_pixel - 4))
      ),
      NULL
    )
  );

-- A thread's state.
CREATE PERFETTO FUNCTION _thread_state_to_svg(
  -- Left edge.
  x_pixel DOUBLE,
  -- Upper edge.
  y_pixel DOUBLE,
  -- Width in pixels.
  width_pixel DOUBLE,
  -- Height in pixels.
  height_pixel DOUBLE,
  -- The state.
  state STRING,
  -- Whether it waits for input or output.
  io_wait LONG,
  -- What in the kernel it waits in.
  blocked_function STRING,
  -- How long it lasted.
  dur DURATION,
  -- The link.
  href STRING,
  -- It is drawn at least so wide, in pixels.
  min_pixel_width LONG
)
RETURNS STRING AS
SELECT
  _svg_rect(
    $x_pixel, $y_pixel, max($width_pixel, $min_pixel_width), $height_pixel, _state_color($state, $io_wait),
    'Thread State: ' || coalesce($state, '?') || ' (' || _format_duration($dur) || ')'
    || coalesce(', blocked by ' || $blocked_function, ''),
    $href, NULL
  );

-- A value of a counter as a bar from zero, or from the smallest value when none is below zero.
CREATE PERFETTO FUNCTION _counter_to_svg(
  -- Left edge.
  x_pixel DOUBLE,
  -- Upper edge of the curve.
  y_pixel DOUBLE,
  -- Width in pixels.
  width_pixel DOUBLE,
  -- Height of the curve.
  height_pixel DOUBLE,
  -- The value.
  value DOUBLE,
  -- The largest one.
  max_value DOUBLE,
  -- The smallest one.
  min_value DOUBLE,
  -- Name of the counter.
  name STRING,
  -- The link.
  href STRING,
  -- It is drawn at least so wide, in pixels.
  min_pixel_width LONG
)
RETURNS STRING AS
WITH
  scale AS (
    SELECT
      -- where the bars stand: zero, or the end of the values that is nearer to it
      min(max(0.0, $min_value), $max_value) AS base,
      $height_pixel / iif($max_value > $min_value, $max_value - $min_value, 1.0) AS px
  )
SELECT
  _svg_rect(
    $x_pixel,
    $y_pixel + ($max_value - max($value, base)) * px,
    max($width_pixel, $min_pixel_width),
    abs($value - base) * px,
    iif($value >= 0, 'steelblue', 'coral'),
    coalesce($name, '?') || ': ' || printf('%.1f', $value),
    $href,
    NULL
  )
FROM scale;

-- What looks alike in all pictures.
CREATE PERFETTO FUNCTION _svg_styles()
RETURNS STRING AS
SELECT '<style>rect{cursor:pointer} text{font-family:sans-serif;fill:#333;pointer-events:none;dominant-baseline:central}</style>';

-- Pictures of slices, states and counters: (svg_group_key, svg). Rows that are narrower than two pixels are left out, those
-- of counters when they are narrower than one.
CREATE PERFETTO MACRO _svg_timeline_with_counters(
  -- The three columns below, and ts, dur, depth, name, href.
  slice_table TableOrSubquery,
  -- The three columns below, and ts, dur, state, io_wait, blocked_function, href.
  thread_state_table TableOrSubquery,
  -- The three columns below, and ts, dur, name, value, href.
  counter_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it; also the track's label.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Room in front of it.
  left_margin Expr,
  -- Whether all counters of a picture have the same scale.
  use_shared_counter_scale Expr
)
RETURNS TableOrSubquery AS
(
  WITH
    _svg_rows AS MATERIALIZED (
      SELECT
        $svg_group_key_col AS grp, $track_group_key_col AS track, $track_group_order_col AS ord, 1 AS kind,
        ts, dur, 0 AS depth, NULL AS name, href, state, io_wait, blocked_function, NULL AS value
      FROM $thread_state_table
      WHERE dur > 0
      UNION ALL
      SELECT
        $svg_group_key_col, $track_group_key_col, $track_group_order_col, 2,
        ts, dur, coalesce(depth, 0), name, href, NULL, NULL, NULL, NULL
      FROM $slice_table
      WHERE dur > 0
      UNION ALL
      SELECT
        $svg_group_key_col, $track_group_key_col, $track_group_order_col, 3,
        ts, dur, 0, name, href, NULL, NULL, NULL, CAST(value AS REAL)
      FROM $counter_table
      WHERE dur > 0
    ),
    _svg_scales AS MATERIALIZED (
      SELECT
        grp, min(ts) AS ts_min, CAST($max_width AS REAL) / (max(ts + dur) - min(ts)) AS px, min(value) AS value_min,
        max(value) AS value_max
      FROM _svg_rows
      GROUP BY grp
    ),
    -- a band holds the rows of one kind of a track; the first band of a track has its label above it
    _svg_bands AS MATERIALIZED (
      SELECT
        grp,
        track,
        kind,
        min(ord) AS ord,
        iif(row_number() OVER (PARTITION BY grp, track ORDER BY kind) = 1, 20, 0) AS label_height,
        CASE kind
          WHEN 1 THEN max(1, _row_height($max_width) / 2)
          WHEN 2 THEN (max(depth) + 1) * _row_height($max_width) + 5
          ELSE _counter_height($max_width) + 5
        END AS height,
        min(value) AS value_min,
        max(value) AS value_max
      FROM _svg_rows
      GROUP BY grp, track, kind
    ),
    _svg_placed AS MATERIALIZED (
      SELECT
        b.*,
        sum(label_height + height) OVER (PARTITION BY grp ORDER BY ord, track, kind ROWS UNBOUNDED PRECEDING) - height AS y
      FROM _svg_bands AS b
    ),
    _svg_pieces AS (
      SELECT
        r.grp,
        b.y,
        1 AS is_row,
        r.ts,
        r.depth,
        CASE r.kind
          WHEN 1 THEN
            _thread_state_to_svg(
              (r.ts - s.ts_min) * s.px, CAST(b.y AS REAL), r.dur * s.px, CAST(b.height AS REAL), r.state, r.io_wait,
              r.blocked_function, r.dur, r.href, 0
            )
          WHEN 2 THEN
            _slice_to_svg(
              (r.ts - s.ts_min) * s.px, CAST(b.y + r.depth * _row_height($max_width) AS REAL), r.dur * s.px,
              CAST(_row_height($max_width) AS REAL), r.name, r.dur, r.href, 0
            )
          ELSE
            _counter_to_svg(
              (r.ts - s.ts_min) * s.px, CAST(b.y AS REAL), r.dur * s.px, CAST(_counter_height($max_width) AS REAL), r.value,
              iif($use_shared_counter_scale, s.value_max, b.value_max),
              iif($use_shared_counter_scale, s.value_min, b.value_min), r.name, r.href, 0
            )
        END AS svg
      FROM _svg_rows AS r
      JOIN _svg_scales AS s ON s.grp IS r.grp
      JOIN _svg_placed AS b ON b.grp IS r.grp AND b.track IS r.track AND b.kind = r.kind
      WHERE r.dur * s.px >= iif(r.kind = 3, 1, 2)
      UNION ALL
      SELECT
        grp,
        y,
        0,
        0,
        0,
        printf('<text x="5" y="%d" font-size="11">%s</text>', y - 10, _escape_xml(CAST(coalesce(track, '') AS TEXT)))
        || iif(
          kind = 3,
          printf('<text x="200" y="%d" font-size="9">%s .. %s</text>', y - 10, _format_large_number(value_min), _format_large_number(value_max)),
          ''
        )
      FROM _svg_placed
      WHERE label_height > 0
    )
  SELECT
    p.grp AS svg_group_key,
    printf(
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">%s<g transform="translate(%d,5)">',
      $max_width + $left_margin + 10,
      (SELECT max(b.y + b.height) FROM _svg_placed AS b WHERE b.grp IS p.grp) + 10,
      _svg_styles(),
      $left_margin
    ) || group_concat(p.svg, '') || '</g></svg>' AS svg
  FROM (SELECT * FROM _svg_pieces ORDER BY grp, y, is_row, ts, depth) AS p
  GROUP BY p.grp
);

-- The same without counters.
CREATE PERFETTO MACRO _svg_timeline(
  -- As above.
  slice_table TableOrSubquery,
  -- As above.
  thread_state_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Room in front of it.
  left_margin Expr
)
RETURNS TableOrSubquery AS
(
  SELECT *
  FROM _svg_timeline_with_counters!(
    $slice_table,
    $thread_state_table,
    (
      SELECT
        NULL AS $svg_group_key_col, NULL AS $track_group_key_col, NULL AS $track_group_order_col, 0 AS ts, 0 AS dur,
        NULL AS name, NULL AS value, NULL AS href
      WHERE 0
    ),
    $svg_group_key_col,
    $track_group_key_col,
    $track_group_order_col,
    $max_width,
    $left_margin,
    0
  )
);

-- Spans as far as they lie in an interval: the rows with ts and dur cut.
CREATE PERFETTO MACRO _svg_cut(
  -- Spans: ts, dur; those without an end last to the trace's.
  spans TableOrSubquery,
  -- Start of the interval.
  ts Expr,
  -- Its end.
  ts_end Expr
)
RETURNS TableOrSubquery AS
(
  SELECT
    *, max(span_ts, $ts) AS ts, min(span_ts + iif(span_dur < 0, trace_end() - span_ts, span_dur), $ts_end) - max(span_ts, $ts) AS dur
  FROM $spans
  WHERE span_ts < $ts_end AND (span_dur < 0 OR span_ts + span_dur > $ts)
);

-- A picture of all threads that have slices, with what they did and how they were scheduled.
CREATE PERFETTO FUNCTION export_to_svg(
  -- Start of the part to draw; NULL: of the trace.
  ts TIMESTAMP,
  -- Its length; NULL: to the trace's end.
  dur DURATION
)
-- SVG; NULL when there is nothing to draw.
RETURNS STRING AS
WITH
  part AS MATERIALIZED (
    SELECT
      coalesce($ts, trace_start()) AS ts,
      coalesce($ts, trace_start()) + coalesce($dur, trace_end() - coalesce($ts, trace_start())) AS ts_end
  ),
  drawn AS MATERIALIZED (
    SELECT
      t.utid,
      k.id AS track_id,
      coalesce(p.name || ' / ', '') || coalesce(t.name, '') || ' ' || t.tid
      || iif(t.machine_id > 0, ' on machine ' || t.machine_id, '') AS track,
      row_number() OVER (ORDER BY t.machine_id, p.pid, t.is_main_thread DESC, t.tid) AS ord
    FROM thread_track AS k
    JOIN thread AS t USING (utid)
    LEFT JOIN process AS p USING (upid)
    WHERE k.id IN (SELECT track_id FROM slice)
  )
SELECT svg
FROM _svg_timeline!(
  (
    SELECT 1 AS picture, track, ord, ts, dur, depth, name, NULL AS href
    FROM _svg_cut!(
      (
        SELECT d.track, d.ord, s.ts AS span_ts, s.dur AS span_dur, s.depth, s.name
        FROM drawn AS d
        JOIN slice AS s USING (track_id)
      ),
      (SELECT ts FROM part),
      (SELECT ts_end FROM part)
    )
  ),
  (
    SELECT 1 AS picture, track, ord, ts, dur, state, io_wait, blocked_function, NULL AS href
    FROM _svg_cut!(
      (
        SELECT d.track, d.ord, s.ts AS span_ts, s.dur AS span_dur, s.state, s.io_wait, s.blocked_function
        FROM drawn AS d
        JOIN thread_state AS s USING (utid)
      ),
      (SELECT ts FROM part),
      (SELECT ts_end FROM part)
    )
  ),
  picture,
  track,
  ord,
  1600,
  0
);

-- The steps of such pictures one by one, for pictures that are put together in another way: rows become positions, positions tracks,
-- tracks a picture.

-- How many pixels a nanosecond has.
CREATE PERFETTO FUNCTION _pixels_per_ns(
  -- Width of the timeline in pixels.
  total_width LONG,
  -- Its start.
  ts_min LONG,
  -- Its end.
  ts_max LONG
)
RETURNS DOUBLE AS
SELECT CAST($total_width AS REAL) / nullif($ts_max - $ts_min, 0);

-- Rows with their place in a picture, in pixels from the upper left corner of their track: the three columns, kind, x_pixel, y_pixel,
-- width_pixel, height_pixel, what the row says, and min_value and max_value of the scale of counters.
CREATE PERFETTO MACRO _intervals_to_positions(
  -- The three columns below, kind (1: states, 2: slices, 3: counters), and ts, dur, depth, name, href, state, io_wait,
  -- blocked_function, value.
  intervals_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Rows that are narrower are left out, in pixels.
  min_width Expr,
  -- Whether all counters of a picture have the same scale.
  use_shared_counter_scale Expr
)
RETURNS Expr AS
(
  SELECT
    i.$svg_group_key_col,
    i.$track_group_key_col,
    i.$track_group_order_col,
    i.kind,
    (i.ts - s._ts_min) * s._px AS x_pixel,
    CAST(iif(i.kind = 2, i.depth * _row_height($max_width), 0) AS REAL) AS y_pixel,
    i.dur * s._px AS width_pixel,
    CAST(iif(i.kind = 3, _counter_height($max_width), _row_height($max_width)) AS REAL) AS height_pixel,
    i.ts,
    i.dur,
    i.depth,
    i.name,
    i.href,
    i.state,
    i.io_wait,
    i.blocked_function,
    CAST(i.value AS REAL) AS value,
    CAST(iif($use_shared_counter_scale, s._min_value, t._min_value) AS REAL) AS min_value,
    CAST(iif($use_shared_counter_scale, s._max_value, t._max_value) AS REAL) AS max_value
  FROM $intervals_table AS i
  JOIN (
    SELECT
      $svg_group_key_col AS _grp,
      min(ts) AS _ts_min,
      _pixels_per_ns($max_width, min(ts), max(ts + dur)) AS _px,
      min(value) AS _min_value,
      max(value) AS _max_value
    FROM $intervals_table
    GROUP BY 1
  ) AS s ON s._grp IS i.$svg_group_key_col
  JOIN (
    SELECT
      $svg_group_key_col AS _grp, $track_group_key_col AS _track, min(value) AS _min_value, max(value) AS _max_value
    FROM $intervals_table
    GROUP BY 1, 2
  ) AS t ON t._grp IS i.$svg_group_key_col AND t._track IS i.$track_group_key_col
  WHERE i.dur * s._px >= $min_width
);

-- The same of slices.
CREATE PERFETTO MACRO _slice_intervals_to_positions(
  -- The three columns below, and ts, dur, depth, name, href.
  slice_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Rows that are narrower are left out, in pixels.
  min_width Expr
)
RETURNS Expr AS
(
  SELECT *
  FROM _intervals_to_positions!(
    (
      SELECT
        $svg_group_key_col, $track_group_key_col, $track_group_order_col, 2 AS kind,
        ts, dur, coalesce(depth, 0) AS depth, name, href, NULL AS state, NULL AS io_wait,
        NULL AS blocked_function, NULL AS value
      FROM $slice_table
      WHERE dur > 0
    ),
    $svg_group_key_col,
    $track_group_key_col,
    $track_group_order_col,
    $max_width,
    $min_width,
    0
  )
);

-- The same of states of threads.
CREATE PERFETTO MACRO _thread_state_intervals_to_positions(
  -- The three columns below, and ts, dur, state, io_wait, blocked_function, href.
  thread_state_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Rows that are narrower are left out, in pixels.
  min_width Expr
)
RETURNS Expr AS
(
  SELECT *
  FROM _intervals_to_positions!(
    (
      SELECT
        $svg_group_key_col, $track_group_key_col, $track_group_order_col, 1 AS kind,
        ts, dur, 0 AS depth, NULL AS name, href, state, io_wait, blocked_function,
        NULL AS value
      FROM $thread_state_table
      WHERE dur > 0
    ),
    $svg_group_key_col,
    $track_group_key_col,
    $track_group_order_col,
    $max_width,
    $min_width,
    0
  )
);

-- The same of counters.
CREATE PERFETTO MACRO _counter_intervals_to_positions(
  -- The three columns below, and ts, dur, name, value, href.
  counter_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- Width of the timeline in pixels.
  max_width Expr,
  -- Rows that are narrower are left out, in pixels.
  min_width Expr,
  -- Whether all counters of a picture have the same scale.
  use_shared_counter_scale Expr
)
RETURNS Expr AS
(
  SELECT *
  FROM _intervals_to_positions!(
    (
      SELECT
        $svg_group_key_col, $track_group_key_col, $track_group_order_col, 3 AS kind,
        ts, dur, 0 AS depth, name, href, NULL AS state, NULL AS io_wait,
        NULL AS blocked_function, value
      FROM $counter_table
      WHERE dur > 0
    ),
    $svg_group_key_col,
    $track_group_key_col,
    $track_group_order_col,
    $max_width,
    $min_width,
    $use_shared_counter_scale
  )
);

-- A position as SVG, so many pixels further down.
CREATE PERFETTO MACRO _position_to_svg(
  -- The position.
  p ColumnName,
  -- How far.
  down Expr
)
RETURNS Expr AS (
  CASE $p.kind
    WHEN 1 THEN
      _thread_state_to_svg(
        $p.x_pixel, $p.y_pixel + $down, $p.width_pixel, $p.height_pixel, $p.state, $p.io_wait, $p.blocked_function, $p.dur, $p.href, 0
      )
    WHEN 2 THEN _slice_to_svg($p.x_pixel, $p.y_pixel + $down, $p.width_pixel, $p.height_pixel, $p.name, $p.dur, $p.href, 0)
    ELSE
      _counter_to_svg(
        $p.x_pixel, $p.y_pixel + $down, $p.width_pixel, $p.height_pixel, $p.value, $p.max_value, $p.min_value, $p.name, $p.href, 0
      )
  END
);

-- Tracks without labels: the two columns, svg and height, one row a track.
CREATE PERFETTO MACRO _svg_from_positions(
  -- What _intervals_to_positions! gives.
  positions_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Room above, in pixels.
  top_margin Expr
)
RETURNS Expr AS
(
  SELECT
    $svg_group_key_col,
    $track_group_key_col,
    group_concat(_position_to_svg!(p, CAST($top_margin AS REAL)), '') AS svg,
    $top_margin + max(p.y_pixel + p.height_pixel) AS height
  FROM (SELECT * FROM $positions_table ORDER BY ts, depth) AS p
  GROUP BY $svg_group_key_col, $track_group_key_col
);

-- The same with a label above each.
CREATE PERFETTO MACRO _svg_from_positions_with_label(
  -- What _intervals_to_positions! gives.
  positions_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column with the label.
  label_text ColumnName,
  -- Room above the label, in pixels.
  label_top_margin Expr,
  -- Room from there to the track.
  label_gap Expr
)
RETURNS Expr AS
(
  SELECT
    $svg_group_key_col,
    $track_group_key_col,
    printf('<text x="5" y="%d" font-size="11">', $label_top_margin)
    || _escape_xml(CAST(coalesce(max($label_text), '') AS TEXT)) || '</text>'
    || group_concat(_position_to_svg!(p, CAST($label_top_margin + $label_gap AS REAL)), '') AS svg,
    $label_top_margin + $label_gap + max(p.y_pixel + p.height_pixel) AS height
  FROM (SELECT * FROM $positions_table ORDER BY ts, depth) AS p
  GROUP BY $svg_group_key_col, $track_group_key_col
);

-- Tracks in the order of their column: those of _svg_from_positions!, and track_order.
CREATE PERFETTO MACRO _generate_tracks_by_group(
  -- What _intervals_to_positions! gives.
  positions_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- The first track_order.
  start_order Expr,
  -- From each to the next.
  order_step Expr,
  -- Room above, in pixels.
  top_margin Expr
)
RETURNS Expr AS
(
  SELECT
    t.*,
    $start_order + $order_step * (row_number() OVER (PARTITION BY t.$svg_group_key_col ORDER BY o._ord, t.$track_group_key_col) - 1)
      AS track_order
  FROM _svg_from_positions!($positions_table, $svg_group_key_col, $track_group_key_col, $top_margin) AS t
  JOIN (
    SELECT $svg_group_key_col AS _grp, $track_group_key_col AS _track, min($track_group_order_col) AS _ord
    FROM $positions_table
    GROUP BY 1, 2
  ) AS o ON o._grp IS t.$svg_group_key_col AND o._track IS t.$track_group_key_col
);

-- The same with labels.
CREATE PERFETTO MACRO _generate_tracks_by_group_with_label(
  -- What _intervals_to_positions! gives.
  positions_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Column: which track of it.
  track_group_key_col ColumnName,
  -- Column: order of the tracks.
  track_group_order_col ColumnName,
  -- The first track_order.
  start_order Expr,
  -- From each to the next.
  order_step Expr,
  -- Room above the label, in pixels.
  top_margin Expr,
  -- Column with the label.
  label_text ColumnName,
  -- Room from there to the track.
  label_gap Expr
)
RETURNS Expr AS
(
  SELECT
    t.*,
    $start_order + $order_step * (row_number() OVER (PARTITION BY t.$svg_group_key_col ORDER BY o._ord, t.$track_group_key_col) - 1)
      AS track_order
  FROM _svg_from_positions_with_label!(
    $positions_table, $svg_group_key_col, $track_group_key_col, $label_text, $top_margin, $label_gap
  ) AS t
  JOIN (
    SELECT $svg_group_key_col AS _grp, $track_group_key_col AS _track, min($track_group_order_col) AS _ord
    FROM $positions_table
    GROUP BY 1, 2
  ) AS o ON o._grp IS t.$svg_group_key_col AND o._track IS t.$track_group_key_col
);

-- Pictures of tracks one below the other: (svg_group_key, svg).
CREATE PERFETTO MACRO _combine_track_svgs(
  -- Tracks: the column below, svg, height, track_order.
  track_svgs_table TableOrSubquery,
  -- Column: which picture.
  svg_group_key_col ColumnName,
  -- Width of the timeline in pixels.
  total_width Expr,
  -- Room in front of it.
  left_margin Expr
)
RETURNS Expr AS
(
  SELECT
    $svg_group_key_col AS svg_group_key,
    printf(
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">%s<g transform="translate(%d,5)">',
      $total_width + $left_margin + 10,
      sum(height) + 10,
      _svg_styles(),
      $left_margin
    ) || group_concat(printf('<g transform="translate(0,%g)">', above) || svg || '</g>', '') || '</g></svg>' AS svg
  FROM (
    SELECT
      *,
      coalesce(
        sum(height) OVER (
          PARTITION BY $svg_group_key_col ORDER BY track_order ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        0.0
      ) AS above
    FROM $track_svgs_table
    ORDER BY track_order
  )
  GROUP BY $svg_group_key_col
);
