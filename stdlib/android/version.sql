-- Version of Android.

-- Its API level; NULL when it is not Android.
CREATE PERFETTO FUNCTION _android_sdk_version()
RETURNS LONG AS
SELECT extract_metadata('android_sdk_version');
