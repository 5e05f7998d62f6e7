/* Imports values of Android's system properties: counters, states of the device, what is profiled, the wallpaper. */
#include "importer/android/android_internal.h"

#include <stdlib.h>

static const char prefix[] = "debug.tracing.";

enum use { INSTANT, SCREEN_STATE, COUNTER, DYNAMIC_METADATA, METADATA };

static const struct property {
    const char *name; /* without the prefix */
    enum use use;
    const char *track;     /* name of the track; NULL: that of the property */
    enum metadata_key key; /* of METADATA */
} properties[] = {
    {"device_state", INSTANT, "DeviceStateChanged", 0},
    {"screen_state", SCREEN_STATE, "ScreenState", 0},
    {"mcc", COUNTER, NULL, 0},
    {"mnc", COUNTER, NULL, 0},
    {"desktop_mode_visible_tasks", COUNTER, NULL, 0},
    {"battery_status", COUNTER, "BatteryStatus", 0},
    {"plug_type", COUNTER, "PlugType", 0},
    {"wallpaper.package_name", DYNAMIC_METADATA, NULL, 0},
    {"wallpaper.class_name", DYNAMIC_METADATA, NULL, 0},
    {"profile_boot_classpath", METADATA, NULL, METADATA_android_profile_boot_classpath},
    {"profile_system_server", METADATA, NULL, METADATA_android_profile_system_server},
};

/* A decimal number of 32 bits, and nothing else. */
static bool is_number(struct slice text, int32_t *value)
{
    char copy[16];
    char *end;
    if (!text.len || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.p, text.len);
    copy[text.len] = 0;
    long long v = strtoll(copy, &end, 10);
    *value = (int32_t)v;
    return end == copy + text.len && (copy[0] == '-' || (copy[0] >= '0' && copy[0] <= '9')) && v >= INT32_MIN &&
           v <= INT32_MAX;
}

static void push(struct packet *p, const char *type, strid name, const struct track_dim *dim, int32_t value)
{
    struct track_spec spec = {.type = type,
                              .event_type = TRACK_COUNTER,
                              .name = name,
                              .parent = UINT32_MAX,
                              .dims = dim,
                              .n_dims = dim ? 1 : 0};
    counter_push(p->m->im, p->ts, track_intern(p->m->im->tracks, p->m->id, &spec), value);
}

static void apply(struct packet *p, const struct property *k, struct slice whole, struct slice value)
{
    struct importer *im = p->m->im;
    strid name = import_slice(im, whole), text = import_slice(im, value);
    int32_t number = 0;
    switch (k->use) {
    case INSTANT: {
        uint32_t track = android_track(p->m, "android_device_state", TRACK_SLICE, k->track);
        slice_scoped(im->slices, p->m->id, p->ts, track, 0, text, 0, ARGSET_NONE);
        return;
    }
    case DYNAMIC_METADATA:
        metadata_dynamic(im, p->m, name, COL_NULL, text);
        return;
    case METADATA:
        if (is_number(value, &number))
            metadata_int(im, p->m, k->key, number);
        return;
    case SCREEN_STATE:
        if (is_number(value, &number))
            push(p, "screen_state", import_str(im, k->track), NULL, number);
        return;
    case COUNTER:
        if (is_number(value, &number)) {
            struct track_dim dim = {"sysprop_name", DIM_STR, name};
            push(p, "sysprop_counter", import_str(im, k->track ? k->track : k->name), &dim, number);
        }
    }
}

static void read_property(struct packet *p, struct slice name, struct slice value)
{
    static const char battery[] = "battery_stats.";
    struct importer *im = p->m->im;
    size_t n = sizeof prefix - 1;
    if (name.len < n || memcmp(name.p, prefix, n) != 0)
        return;
    struct slice rest = slice_of(name.p + n, name.len - n);
    if (rest.len >= sizeof battery - 1 && memcmp(rest.p, battery, sizeof battery - 1) == 0) {
        int32_t number;
        struct track_dim dim = {"counter_key", DIM_STR, import_slice(im, rest)};
        if (is_number(value, &number))
            push(p, "battery_stats", import_slice(im, rest), &dim, number);
        return;
    }
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strlen(properties[i].name) == rest.len && memcmp(properties[i].name, rest.p, rest.len) == 0)
            apply(p, &properties[i], name, value);
}

void system_properties_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, name, value;
    while (pb_next(&c, &f)) {
        if (f.id != ANDROID_SYSTEM_PROPERTY_VALUES ||
            !pb_find(pb_bytes(&f), ANDROID_SYSTEM_PROPERTY_PROPERTY_VALUE_NAME, &name))
            continue;
        bool has = pb_find(pb_bytes(&f), ANDROID_SYSTEM_PROPERTY_PROPERTY_VALUE_VALUE, &value);
        read_property(p, pb_bytes(&name), has ? pb_bytes(&value) : slice_of("", 0));
    }
}
