/* The trace's translation tables: names for hashes, and original names for obfuscated ones. */
#include "importer/track_event/track_event_internal.h"

#include "wire/fields.h"

/* One set of tables for the whole import: it hangs on the host's machine. */
struct track_event_translations *track_event_translations(const struct importer *im)
{
    return im->machines.n && im->machines.p[0]->track_event ? im->machines.p[0]->track_event->translations : NULL;
}

struct track_event_translations *track_event_translations_open(void)
{
    return mem_zalloc(sizeof(struct track_event_translations));
}

void track_event_translations_close(struct track_event_translations *t)
{
    if (!t)
        return;
    for (int i = 0; i < N_HASH_KINDS; i++)
        u64map_free(&t->hashes[i]);
    u64map_free(&t->slice_names);
    u64map_free(&t->track_names);
    u64map_free(&t->functions);
    u64map_free(&t->classes);
    mem_free(t);
}

/* The entries of all tables are alike. */
enum {
    ENTRY_KEY = CHROME_STUDY_TRANSLATION_TABLE_HASH_TO_NAME_ENTRY_KEY,
    ENTRY_VALUE = CHROME_STUDY_TRANSLATION_TABLE_HASH_TO_NAME_ENTRY_VALUE,
};

/* The entries of field `field` of a table: {key, value} with a number or a string for a key. */
static void read_entries(struct packet *p, struct slice table, uint32_t field, bool by_name, struct u64map *out)
{
    struct pb_cursor c = pb_cursor(table);
    struct pb_field f, key, value;
    while (pb_next(&c, &f)) {
        if (f.id != field || !pb_find(pb_bytes(&f), ENTRY_KEY, &key) || !pb_find(pb_bytes(&f), ENTRY_VALUE, &value))
            continue;
        uint64_t k = by_name ? import_slice(p->m->im, pb_bytes(&key)) : pb_u64(&key);
        if (!u64map_set(out, k, import_slice(p->m->im, pb_bytes(&value))))
            p->m->im->failed = true;
    }
}

enum tokenize_result track_event_tokenize_translation(struct packet *p)
{
    struct track_event_translations *t = track_event_translations(p->m->im);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (t && pb_next(&c, &f)) {
        struct slice table = pb_bytes(&f);
        switch (f.id) {
        case TRANSLATION_TABLE_CHROME_HISTOGRAM:
            read_entries(p, table, CHROME_HISTORGRAM_TRANSLATION_TABLE_HASH_TO_NAME, false, &t->hashes[HASH_HISTOGRAM]);
            break;
        case TRANSLATION_TABLE_CHROME_USER_EVENT:
            read_entries(p, table, CHROME_USER_EVENT_TRANSLATION_TABLE_ACTION_HASH_TO_NAME, false,
                         &t->hashes[HASH_USER_EVENT]);
            break;
        case TRANSLATION_TABLE_CHROME_PERFORMANCE_MARK:
            read_entries(p, table, CHROME_PERFORMANCE_MARK_TRANSLATION_TABLE_SITE_HASH_TO_NAME, false,
                         &t->hashes[HASH_MARK_SITE]);
            read_entries(p, table, CHROME_PERFORMANCE_MARK_TRANSLATION_TABLE_MARK_HASH_TO_NAME, false,
                         &t->hashes[HASH_MARK]);
            break;
        case TRANSLATION_TABLE_SLICE_NAME:
            read_entries(p, table, SLICE_NAME_TRANSLATION_TABLE_RAW_TO_DEOBFUSCATED_NAME, true, &t->slice_names);
            break;
        case TRANSLATION_TABLE_PROCESS_TRACK_NAME:
            read_entries(p, table, PROCESS_TRACK_NAME_TRANSLATION_TABLE_RAW_TO_DEOBFUSCATED_NAME, true,
                         &t->track_names);
            break;
        case TRANSLATION_TABLE_CHROME_STUDY:
            read_entries(p, table, CHROME_STUDY_TRANSLATION_TABLE_HASH_TO_NAME, false, &t->hashes[HASH_STUDY]);
            break;
        }
    }
    return TOKENIZE_DONE;
}

strid track_event_translate_track_name(const struct importer *im, strid name)
{
    const struct track_event_translations *t = track_event_translations(im);
    const uint64_t *v = t && t->track_names.n ? u64map_get(&t->track_names, name) : NULL;
    return v ? (strid)*v : name;
}

strid track_event_hash_name(const struct importer *im, enum track_event_hash_kind kind, uint64_t hash)
{
    const struct track_event_translations *t = track_event_translations(im);
    const uint64_t *v = t ? u64map_get(&t->hashes[kind], hash) : NULL;
    return v ? (strid)*v : 0;
}

void track_event_parse_chrome_trigger(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct args *args = &m->st->args;
    struct arg_list list = {0};
    struct pb_field f;
    strid name = pb_find(p->field, CHROME_TRIGGER_TRIGGER_NAME, &f) ? import_slice(m->im, pb_bytes(&f)) : 0;
    uint32_t hash = pb_find(p->field, CHROME_TRIGGER_TRIGGER_NAME_HASH, &f) ? pb_u32(&f) : 0;
    strid known = track_event_hash_name(m->im, HASH_STUDY, hash);
    arg_list_uint(args, &list, "chrome_trigger.name_hash", hash);
    if (name || known)
        arg_list_str(args, &list, "chrome_trigger.name", known ? known : name);
    /* One row a trigger: several may have stopped the recording. */
    metadata_insert(m->st, &(struct metadata_row){.name = import_str(m->im, "cr-triggered_rule_name_hash"),
                                                  .key_type = import_str(m->im, "single"),
                                                  .int_value = hash,
                                                  .machine_id = m->id,
                                                  .trace_id = m->im->trace_file});
    struct track_spec spec = {.type = "triggers",
                              .event_type = TRACK_SLICE,
                              .name = import_str(m->im, "Trace Triggers"),
                              .parent = UINT32_MAX};
    slice_scoped(m->im->slices, m->id, p->ts, track_intern(m->im->tracks, m->id, &spec), 0,
                 name ? name : import_str(m->im, "chrome_trigger"), 0, args_intern(args, list.p, list.n));
    arg_list_free(&list);
}
