/* Imports what a device says about its settings: feature flags, game modes, users. */
#include "importer/android/android_internal.h"

#include <math.h>

/* The text of a number; that of 0 for those that are none. */
static strid text_of(struct machine_ctx *m, const char *const *texts, size_t n, uint64_t value)
{
    return import_str(m->im, texts[value < n ? value : 0]);
}
#define TEXT_OF(m, texts, value) text_of(m, texts, sizeof(texts) / sizeof *(texts), value)

static void add_flag(struct packet *p, struct slice bytes)
{
    static const char *const permissions[] = {"unspecified", "read-only", "read-write"},
                             *const origins[] = {"unspecified", "default", "server", "local"},
                             *const backends[] = {"unspecified", "none", "aconfigd", "device_config"},
                             *const types[] = {"unspecified", "boolean", "integer"};
    struct machine_ctx *m = p->m;
    android_aflags_insert(
        m->st,
        &(struct android_aflags_row){
            .ts = p->ts,
            .package = android_text(m, bytes, ANDROID_AFLAGS_FLAG_PKG),
            .name = android_text(m, bytes, ANDROID_AFLAGS_FLAG_NAME),
            .flag_namespace = android_text(m, bytes, ANDROID_AFLAGS_FLAG_FLAG_NAMESPACE),
            .container = android_text(m, bytes, ANDROID_AFLAGS_FLAG_CONTAINER),
            .value = android_text(m, bytes, ANDROID_AFLAGS_FLAG_VALUE),
            .staged_value = android_text(m, bytes, ANDROID_AFLAGS_FLAG_STAGED_VALUE),
            .permission = TEXT_OF(m, permissions, android_number(bytes, ANDROID_AFLAGS_FLAG_PERMISSION)),
            .value_picked_from = TEXT_OF(m, origins, android_number(bytes, ANDROID_AFLAGS_FLAG_VALUE_PICKED_FROM)),
            .storage_backend = TEXT_OF(m, backends, android_number(bytes, ANDROID_AFLAGS_FLAG_STORAGE_BACKEND)),
            .type = TEXT_OF(m, types, android_number(bytes, ANDROID_AFLAGS_FLAG_TYPE))});
}

void aflags_parse(struct packet *p)
{
    struct pb_field f;
    if (pb_find(p->field, ANDROID_AFLAGS_ERROR, &f)) {
        struct arg_list list = {0};
        struct args *args = &p->m->st->args;
        arg_list_str(args, &list, "error", import_slice(p->m->im, pb_bytes(&f)));
        import_log(p->m, STAT_android_aflags_errors, p->ts, p->byte_offset, args_intern(args, list.p, list.n));
        arg_list_free(&list);
        return;
    }
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == ANDROID_AFLAGS_FLAGS)
            add_flag(p, pb_bytes(&f));
}

/* --- game modes --------------------------------------------------------------------------------------------------- */

struct game_mode {
    int64_t supported, use_angle;
    double downscale, fps;
    bool known;
};

static struct game_mode read_mode(struct slice bytes, uint64_t *mode)
{
    struct game_mode g = {.supported = 1, .known = true};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == ANDROID_GAME_INTERVENTION_LIST_GAME_MODE_INFO_MODE)
            *mode = pb_u64(&f);
        else if (f.id == ANDROID_GAME_INTERVENTION_LIST_GAME_MODE_INFO_USE_ANGLE)
            g.use_angle = pb_bool(&f);
        else if (f.id == ANDROID_GAME_INTERVENTION_LIST_GAME_MODE_INFO_RESOLUTION_DOWNSCALE)
            g.downscale = (double)pb_float(&f);
        else if (f.id == ANDROID_GAME_INTERVENTION_LIST_GAME_MODE_INFO_FPS)
            g.fps = (double)pb_float(&f);
    }
    return g;
}

static void add_game(struct machine_ctx *m, struct slice bytes)
{
    enum { MODES = 4 }; /* 1 standard, 2 performance, 3 battery */
    struct game_mode modes[MODES] = {{0}};
    struct android_game_intervention_list_row row = {
        .package_name = android_text(m, bytes, ANDROID_GAME_INTERVENTION_LIST_GAME_PACKAGE_INFO_NAME),
        .uid = (int64_t)android_number(bytes, ANDROID_GAME_INTERVENTION_LIST_GAME_PACKAGE_INFO_UID),
        .current_mode = (int32_t)android_number(bytes, ANDROID_GAME_INTERVENTION_LIST_GAME_PACKAGE_INFO_CURRENT_MODE)};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != ANDROID_GAME_INTERVENTION_LIST_GAME_PACKAGE_INFO_GAME_MODE_INFO)
            continue;
        uint64_t mode = 0;
        struct game_mode g = read_mode(pb_bytes(&f), &mode);
        if (mode > 0 && mode < MODES)
            modes[mode] = g;
    }
#define MODE(prefix, number)                                                                                           \
    row.prefix##_supported = modes[number].supported;                                                                  \
    row.prefix##_use_angle = modes[number].known ? modes[number].use_angle : COL_NULL;                                 \
    row.prefix##_downscale = modes[number].known ? modes[number].downscale : NAN;                                      \
    row.prefix##_fps = modes[number].known ? modes[number].fps : NAN
    MODE(standard_mode, 1);
    MODE(perf_mode, 2);
    MODE(battery_mode, 3);
#undef MODE
    android_game_intervention_list_insert(m->st, &row);
}

/* The last list says whether something went wrong. */
void game_interventions_parse(struct packet *p)
{
    struct stats *stats = &p->m->st->stats;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == ANDROID_GAME_INTERVENTION_LIST_GAME_PACKAGES)
            add_game(p->m, pb_bytes(&f));
    stats_set(stats, p->m->id, STAT_game_intervention_has_parse_errors,
              android_number(p->field, ANDROID_GAME_INTERVENTION_LIST_PARSE_ERROR) != 0);
    stats_set(stats, p->m->id, STAT_game_intervention_has_read_errors,
              android_number(p->field, ANDROID_GAME_INTERVENTION_LIST_READ_ERROR) != 0);
}

/* --- users -------------------------------------------------------------------------------------------------------- */

void user_list_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == ANDROID_USER_LIST_ERROR && pb_i32(&f) < 0)
            stats_add(&m->st->stats, m->id, STAT_user_list_errors, 1);
        if (f.id != ANDROID_USER_LIST_USERS)
            continue;
        int64_t uid = (int32_t)android_number(pb_bytes(&f), ANDROID_USER_LIST_USER_INFO_UID);
        bool added = false;
        if (!u64map_put(&m->android->users, (uint64_t)uid, &added))
            m->im->failed = true;
        if (added)
            android_user_list_insert(m->st, &(struct android_user_list_row){
                                                .type = android_text(m, pb_bytes(&f), ANDROID_USER_LIST_USER_INFO_TYPE),
                                                .android_user_id = uid});
    }
}
