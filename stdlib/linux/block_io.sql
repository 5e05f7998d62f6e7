-- Input and output of block devices.

INCLUDE PERFETTO MODULE intervals.overlap;

-- Requests that wait for a device or are being served by it, device by device.
CREATE PERFETTO VIEW linux_active_block_io_operations_by_device(
  -- When the number changed.
  ts LONG,
  -- From then on.
  ops_in_queue_or_device LONG,
  -- Number of the device (dev_t).
  dev LONG
) AS
SELECT ts, value AS ops_in_queue_or_device, group_name AS dev
FROM intervals_overlap_count_by_group!(
  (
    SELECT s.ts, s.dur, extract_arg(t.dimension_arg_set_id, 'block_device') AS dev
    FROM slice AS s
    JOIN track AS t ON t.id = s.track_id
    WHERE t.type = 'block_io'
  ),
  ts, dur, dev
);

-- The driver's part of a device number (12 bits).
CREATE PERFETTO FUNCTION linux_device_major_id(
  -- Number of the device (dev_t).
  dev LONG
)
-- The number of the driver.
RETURNS LONG AS
SELECT ($dev >> 8) & 4095;

-- The unit's part of a device number (20 bits).
CREATE PERFETTO FUNCTION linux_device_minor_id(
  -- Number of the device (dev_t).
  dev LONG
)
-- The number of the unit.
RETURNS LONG AS
SELECT ($dev & 255) | (($dev >> 20) << 8);
