/* Packets that mark what was there when the recording began: the display's state, Chrome's metadata. */
#include "importer/system/system_internal.h"

#include "importer/core/text_forms.h"
#include "wire/fields.h"

#include <stdio.h>

void display_state_parse(struct packet *p)
{
    struct pb_field f;
    struct machine_ctx *m = p->m;
    if (!pb_find(p->field, INITIAL_DISPLAY_STATE_DISPLAY_STATE, &f))
        return;
    uint32_t track = system_counter_track(m, "screen_state", import_str(m->im, "ScreenState"), NULL, NULL, 0);
    counter_push(m->im, p->ts, track, (double)pb_i32(&f));
}

/* What began the recording in the background, as it is, and the hash of the scenario's name. */
static void background_tracing(struct packet *p, struct slice metadata)
{
    struct importer *im = p->m->im;
    struct pb_field f;
    metadata_dynamic(im, p->m, import_str(im, "cr-background_tracing_metadata"), COL_NULL, import_base64(im, metadata));
    if (pb_find(metadata, BACKGROUND_TRACING_METADATA_SCENARIO_NAME_HASH, &f))
        metadata_dynamic(im, p->m, import_str(im, "cr-scenario_name_hash"), pb_u32(&f), 0);
}

static void set_chrome(struct packet *p, char bundle, const char *key, int64_t i, strid s)
{
    strid name = strpool_printf(&p->m->st->strings, "cr-%c-%s", bundle, key);
    metadata_dynamic(p->m->im, p->m, name, i, s);
}

enum tokenize_result chrome_metadata_tokenize(struct packet *p)
{
    /* Each browser of the recording gets a letter of its own. */
    char bundle = (char)('a' + p->m->system->chrome_bundles % 26);
    char hashes[1024] = "";
    size_t n = 0, n_hashes = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, name, group;
    p->m->system->chrome_bundles++;
    while (pb_next(&c, &f)) {
        if (f.id == CHROME_METADATA_PACKET_CHROME_VERSION_CODE) {
            set_chrome(p, bundle, "playstore_version_code", pb_i32(&f), 0);
        } else if (f.id == CHROME_METADATA_PACKET_ENABLED_CATEGORIES) {
            set_chrome(p, bundle, "enabled_categories", COL_NULL, import_slice(p->m->im, pb_bytes(&f)));
        } else if (f.id == CHROME_METADATA_PACKET_APP_PACKAGE_NAME) {
            set_chrome(p, bundle, "package-name", COL_NULL, import_slice(p->m->im, pb_bytes(&f)));
        } else if (f.id == CHROME_METADATA_PACKET_BACKGROUND_TRACING_METADATA) {
            background_tracing(p, pb_bytes(&f));
        } else if (f.id == CHROME_METADATA_PACKET_FIELD_TRIAL_HASHES &&
                   pb_find(pb_bytes(&f), CHROME_METADATA_PACKET_FINCH_HASH_NAME, &name) &&
                   pb_find(pb_bytes(&f), CHROME_METADATA_PACKET_FINCH_HASH_GROUP, &group)) {
            bool new_line = n_hashes && n_hashes % 2 == 0;
            int k = snprintf(hashes + n, sizeof hashes - n, "%s{ name: %u, group: %u } ", new_line ? "\n" : "",
                             pb_u32(&name), pb_u32(&group));
            n_hashes++;
            n = n + (size_t)k < sizeof hashes ? n + (size_t)k : sizeof hashes - 1;
        }
    }
    if (n)
        set_chrome(p, bundle, "field_trial_hashes", COL_NULL, import_str(p->m->im, hashes));
    if (!p->field.len)
        stats_add(&p->m->st->stats, p->m->id, STAT_empty_chrome_metadata, 1);
    return TOKENIZE_DONE;
}
