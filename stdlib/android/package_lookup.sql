-- Packages by user (uid).

-- The first package of a uid.
CREATE PERFETTO FUNCTION android_package_lookup(
  -- A user id.
  uid LONG
)
-- Name of the package; NULL: none has that uid.
RETURNS STRING AS
SELECT package_name FROM package_list WHERE uid = $uid % 100000 LIMIT 1;
