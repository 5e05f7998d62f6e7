-- Which phone it was.

-- The codename in a build fingerprint (brand/product/device:version…).
CREATE PERFETTO FUNCTION android_device_name_from_fingerprint(
  -- Fingerprint of the build.
  fingerprint STRING
)
-- The codename; NULL: it is not a fingerprint.
RETURNS STRING AS
SELECT str_split(str_split($fingerprint, '/', 2), ':', 0);

-- The codename of each machine whose fingerprint is known.
CREATE PERFETTO TABLE android_device_name(
  -- Name of the device.
  name STRING,
  -- Row of machine.
  machine_id JOINID(machine.id)
) AS
SELECT android_device_name_from_fingerprint(android_build_fingerprint) AS name, id AS machine_id
FROM machine
WHERE android_build_fingerprint IS NOT NULL;
