-- The users of a phone.

-- Numbers and kinds of the users.
CREATE PERFETTO VIEW android_user_list(
  type STRING,
  android_user_id LONG
) AS
SELECT type, android_user_id
FROM __intrinsic_android_user_list;
