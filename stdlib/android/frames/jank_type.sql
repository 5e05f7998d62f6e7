-- Why a frame was late, by the kinds that the frame timeline names.

-- True when the application is to blame.
CREATE PERFETTO FUNCTION android_is_app_jank_type(
  -- What the frame timeline calls the jank; several are separated by commas.
  jank_type STRING
)
-- True or false; NULL for NULL.
RETURNS BOOL AS
SELECT $jank_type GLOB '*App Deadline Missed*' OR $jank_type GLOB '*App Resynced Jitter*';

-- True when the compositor is.
CREATE PERFETTO FUNCTION android_is_sf_jank_type(
  -- What the frame timeline calls the jank; several are separated by commas.
  jank_type STRING
)
-- True or false; NULL for NULL.
RETURNS BOOL AS
SELECT $jank_type GLOB '*SurfaceFlinger CPU Deadline Missed*' OR
  $jank_type GLOB '*SurfaceFlinger GPU Deadline Missed*' OR
  $jank_type GLOB '*SurfaceFlinger Scheduling*' OR
  $jank_type GLOB '*Prediction Error*' OR
  $jank_type GLOB '*Display HAL*';

-- True when one of them is, or the frame was dropped.
CREATE PERFETTO FUNCTION android_is_missed_frame_type(
  -- What the frame timeline calls the jank; several are separated by commas.
  jank_type STRING
)
-- True or false; NULL for NULL.
RETURNS BOOL AS
SELECT
  android_is_app_jank_type($jank_type) OR android_is_sf_jank_type($jank_type) OR $jank_type GLOB '*Dropped Frame*';
