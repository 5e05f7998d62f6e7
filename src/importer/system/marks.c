/* Packets that mark what was there when the recording began: the display's state, Chrome's metadata. */
#include "importer/system/system_internal.h"

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
    size_t n = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, name, group;
    p->m->system->chrome_bundles++;
    while (pb_next(&c, &f)) {
        if (f.id == CHROME_METADATA_PACKET_CHROME_VERSION_CODE) {
            set_chrome(p, bundle, "playstore_version_code", pb_i32(&f), 0);
        } else if (f.id == CHROME_METADATA_PACKET_ENABLED_CATEGORIES) {
            set_chrome(p, bundle, "enabled_categories", COL_NULL, import_slice(p->m->im, pb_bytes(&f)));
        } else if (f.id == CHROME_METADATA_PACKET_FIELD_TRIAL_HASHES &&
                   pb_find(pb_bytes(&f), CHROME_METADATA_PACKET_FINCH_HASH_NAME, &name) &&
                   pb_find(pb_bytes(&f), CHROME_METADATA_PACKET_FINCH_HASH_GROUP, &group)) {
            int k = snprintf(hashes + n, sizeof hashes - n, "{ name: %u, group: %u } ", pb_u32(&name), pb_u32(&group));
            n = n + (size_t)k < sizeof hashes ? n + (size_t)k : sizeof hashes - 1;
        }
    }
    if (n)
        set_chrome(p, bundle, "field_trial_hashes", COL_NULL, import_str(p->m->im, hashes));
    if (!p->field.len)
        stats_add(&p->m->st->stats, p->m->id, STAT_empty_chrome_metadata, 1);
    return TOKENIZE_DONE;
}
