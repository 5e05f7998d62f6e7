-- The users of a phone.

-- Numbers and kinds of the users.
CREATE PERFETTO VIEW android_user_list(
  -- Number of the user.
  android_user_id LONG,
  -- Type of the user.
  type STRING
) AS
SELECT android_user_id, type
FROM __intrinsic_android_user_list;
