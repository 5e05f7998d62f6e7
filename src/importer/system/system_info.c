/* Imports SystemInfo packets: the machine's row, its metadata, and its kernel's version. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

#include <stdlib.h>

/* "6.1.0-56-cloud" gives 6 and 1; anything else leaves the version unknown. */
static void set_kernel_version(struct machine_ctx *m, struct slice release)
{
    char text[32] = {0};
    memcpy(text, release.p, release.len < sizeof text - 1 ? release.len : sizeof text - 1);
    char *end;
    unsigned long major = strtoul(text, &end, 10);
    if (end == text || *end != '.')
        return;
    char *minor_at = end + 1;
    unsigned long minor = strtoul(minor_at, &end, 10);
    if (end == minor_at || major > 1000 || minor > 1000)
        return;
    m->kernel_major = (uint32_t)major;
    m->kernel_minor = (uint32_t)minor;
}

static void utsname(struct machine_ctx *m, struct slice bytes)
{
    strid text[5] = {0}; /* by field number: sysname, version, release, machine */
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id < 5)
            text[f.id] = import_slice(m->im, pb_bytes(&f));
        if (f.id == UTSNAME_RELEASE && pb_bytes(&f).len)
            set_kernel_version(m, pb_bytes(&f));
    }
    metadata_str(m->im, m, METADATA_system_name, text[UTSNAME_SYSNAME]);
    metadata_str(m->im, m, METADATA_system_version, text[UTSNAME_VERSION]);
    metadata_str(m->im, m, METADATA_system_release, text[UTSNAME_RELEASE]);
    metadata_str(m->im, m, METADATA_system_machine, text[UTSNAME_MACHINE]);
    ROW_SET(m->st, machine, sysname, m->id, text[UTSNAME_SYSNAME]);
    ROW_SET(m->st, machine, version, m->id, text[UTSNAME_VERSION]);
    ROW_SET(m->st, machine, release, m->id, text[UTSNAME_RELEASE]);
    machine_set_arch(m, text[UTSNAME_MACHINE]);
}

/* What of a build's fingerprint is told apart: brand/product/device:RELEASE/id/INCREMENTAL:type/keys. */
struct fingerprint {
    struct slice release, incremental;
};

/* What stands before `end`, which is taken off the rest as well; false when it is not there. */
static bool take_until(struct slice *rest, char end, struct slice *part)
{
    const uint8_t *at = rest->len ? memchr(rest->p, end, rest->len) : NULL;
    if (!at)
        return false;
    size_t n = (size_t)(at - rest->p);
    *part = slice_of(rest->p, n);
    *rest = slice_of(at + 1, rest->len - n - 1);
    return true;
}

static bool read_fingerprint(struct slice text, struct fingerprint *f)
{
    struct slice device, id;
    return take_until(&text, ':', &device) && take_until(&text, '/', &f->release) && take_until(&text, '/', &id) &&
           take_until(&text, ':', &f->incremental);
}

/* The API level of a release of Android, for recorders that tell the fingerprint only: those of later releases tell the
 * level, too. */
static const struct {
    const char *release;
    int sdk;
} releases[] = {
    {"5.0", 21}, {"5.0.1", 21}, {"5.0.2", 21}, {"5.1", 22}, {"5.1.1", 22}, {"6.0", 23}, {"7.0", 24},
    {"7.1", 25}, {"8.0", 26},   {"8.1", 27},   {"9", 28},   {"10", 29},    {"11", 30},  {"12", 31},
};

static void set_sdk_version(struct machine_ctx *m, int64_t sdk)
{
    metadata_int(m->im, m, METADATA_android_sdk_version, sdk);
    ROW_SET(m->st, machine, android_sdk_version, m->id, sdk);
}

static void sdk_of_release(struct machine_ctx *m, struct slice release)
{
    enum { SDK_OF_S = 31 };
    if (release.len && (release.p[0] == 'S' || release.p[0] == 'T')) /* what 12 and 13 were called before they were */
        set_sdk_version(m, SDK_OF_S);
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        if (slice_eq_str(release, releases[i].release))
            set_sdk_version(m, releases[i].sdk);
}

static void fingerprint(struct machine_ctx *m, struct slice text, bool has_sdk)
{
    struct fingerprint f;
    if (!read_fingerprint(text, &f))
        return;
    metadata_str(m->im, m, METADATA_android_incremental_build, import_slice(m->im, f.incremental));
    if (!has_sdk)
        sdk_of_release(m, f.release);
}

static const struct {
    uint32_t field;
    enum metadata_key key;
} strings[] = {
    {SYSTEM_INFO_ANDROID_BUILD_FINGERPRINT, METADATA_android_build_fingerprint},
    {SYSTEM_INFO_TRACING_SERVICE_VERSION, METADATA_tracing_service_version},
    {SYSTEM_INFO_ANDROID_SOC_MODEL, METADATA_android_soc_model},
    {SYSTEM_INFO_ANDROID_HARDWARE_REVISION, METADATA_android_hardware_revision},
    {SYSTEM_INFO_ANDROID_STORAGE_MODEL, METADATA_android_storage_model},
    {SYSTEM_INFO_ANDROID_RAM_MODEL, METADATA_android_ram_model},
    {SYSTEM_INFO_ANDROID_GUEST_SOC_MODEL, METADATA_android_guest_soc_model},
    {SYSTEM_INFO_ANDROID_DEVICE_MANUFACTURER, METADATA_android_device_manufacturer},
    {SYSTEM_INFO_ANDROID_SERIAL_CONSOLE, METADATA_android_serial_console},
};

enum tokenize_result system_info_tokenize(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, sdk;
    while (pb_next(&c, &f)) {
        strid s = f.wire == PB_BYTES && f.id != SYSTEM_INFO_UTSNAME ? import_slice(m->im, pb_bytes(&f)) : 0;
        for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
            if (strings[i].field == f.id)
                metadata_str(m->im, m, strings[i].key, s);
        switch (f.id) {
        case SYSTEM_INFO_UTSNAME:
            utsname(m, pb_bytes(&f));
            break;
        case SYSTEM_INFO_ANDROID_BUILD_FINGERPRINT:
            ROW_SET(m->st, machine, android_build_fingerprint, m->id, s);
            fingerprint(m, pb_bytes(&f), pb_find(p->field, SYSTEM_INFO_ANDROID_SDK_VERSION, &sdk));
            break;
        case SYSTEM_INFO_ANDROID_SDK_VERSION:
            set_sdk_version(m, pb_i64(&f));
            break;
        case SYSTEM_INFO_PAGE_SIZE:
            if (pb_u32(&f) && pb_u32(&f) <= 1 << 20)
                m->system->page_size = pb_u32(&f);
            break;
        case SYSTEM_INFO_TIMEZONE_OFF_MINS:
            metadata_int(m->im, m, METADATA_timezone_off_mins, pb_i32(&f));
            break;
        case SYSTEM_INFO_NUM_CPUS:
            ROW_SET(m->st, machine, num_cpus, m->id, pb_u32(&f));
            break;
        case SYSTEM_INFO_ANDROID_DEVICE_MANUFACTURER:
            ROW_SET(m->st, machine, android_device_manufacturer, m->id, s);
            break;
        case SYSTEM_INFO_SYSTEM_RAM_BYTES: {
            int64_t bytes = pb_i64(&f), gb = (int64_t)(((double)bytes + 5e8) / 1e9);
            metadata_int(m->im, m, METADATA_system_ram_bytes, bytes);
            metadata_int(m->im, m, METADATA_system_ram_gb, gb);
            ROW_SET(m->st, machine, system_ram_bytes, m->id, bytes);
            ROW_SET(m->st, machine, system_ram_gb, m->id, gb);
            break;
        }
        case SYSTEM_INFO_MACHINE_NAME:
            if (!m->keeps_name)
                ROW_SET(m->st, machine, name, m->id, s);
            break;
        }
    }
    return TOKENIZE_DONE;
}
