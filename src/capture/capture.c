/* Owns the identity of the capture library; the applets live in the subfolders. */
extern const char capture_version[];
const char capture_version[] = MERIDIAN_VERSION;
