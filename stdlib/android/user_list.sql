-- The users of a phone.

-- Numbers and kinds of the users.
CREATE PERFETTO VIEW android_user_list(
  android_user_id LONG,
  type STRING
) AS
SELECT android_user_id, type
FROM __intrinsic_android_user_list;
