/* Names that come into a trace after it was recorded: functions at addresses, classes behind obfuscated names. */
#include "base/hash.h"
#include "importer/track_event/track_event_internal.h"
#include "wire/fields.h"

static uint64_t address_key(const struct importer *im, struct slice build_id, uint64_t address)
{
    return hash_combine(hash_bytes_seeded(build_id.p, build_id.len, im->secret), address);
}

enum tokenize_result track_event_tokenize_module_symbols(struct packet *p)
{
    struct track_event_translations *t = track_event_translations(p->m->im);
    struct pb_field f, build_id, address, line, name;
    struct slice id = pb_find(p->field, MODULE_SYMBOLS_BUILD_ID, &build_id) ? pb_bytes(&build_id) : slice_of(NULL, 0);
    struct pb_cursor c = pb_cursor(p->field);
    while (t && pb_next(&c, &f)) {
        if (f.id != MODULE_SYMBOLS_ADDRESS_SYMBOLS || !pb_find(pb_bytes(&f), ADDRESS_SYMBOLS_ADDRESS, &address) ||
            !pb_find(pb_bytes(&f), ADDRESS_SYMBOLS_LINES, &line) ||
            !pb_find(pb_bytes(&line), LINE_FUNCTION_NAME, &name))
            continue;
        if (!u64map_set(&t->functions, address_key(p->m->im, id, pb_u64(&address)),
                        import_slice(p->m->im, pb_bytes(&name))))
            p->m->im->failed = true;
    }
    return TOKENIZE_DONE;
}

enum tokenize_result track_event_tokenize_deobfuscation(struct packet *p)
{
    struct track_event_translations *t = track_event_translations(p->m->im);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, from, to;
    while (t && pb_next(&c, &f)) {
        if (f.id != DEOBFUSCATION_MAPPING_OBFUSCATED_CLASSES ||
            !pb_find(pb_bytes(&f), OBFUSCATED_CLASS_OBFUSCATED_NAME, &from) ||
            !pb_find(pb_bytes(&f), OBFUSCATED_CLASS_DEOBFUSCATED_NAME, &to))
            continue;
        if (!u64map_set(&t->classes, import_slice(p->m->im, pb_bytes(&from)), import_slice(p->m->im, pb_bytes(&to))))
            p->m->im->failed = true;
    }
    return TOKENIZE_DONE;
}

strid track_event_function_name(const struct importer *im, struct seq_generation *g, uint64_t location_iid)
{
    struct pb_field mapping, pc, build_id, bytes;
    const struct track_event_translations *t = track_event_translations(im);
    struct slice location = interned_find(g, INTERNED_DATA_UNSYMBOLIZED_SOURCE_LOCATIONS, location_iid);
    if (!t || !t->functions.n || !pb_find(location, UNSYMBOLIZED_SOURCE_LOCATION_MAPPING_ID, &mapping) ||
        !pb_find(location, UNSYMBOLIZED_SOURCE_LOCATION_REL_PC, &pc) ||
        !pb_find(interned_find(g, INTERNED_DATA_MAPPINGS, pb_u64(&mapping)), MAPPING_BUILD_ID, &build_id) ||
        !pb_find(interned_find(g, INTERNED_DATA_BUILD_IDS, pb_u64(&build_id)), INTERNED_STRING_STR, &bytes))
        return 0;
    const uint64_t *name = u64map_get(&t->functions, address_key(im, pb_bytes(&bytes), pb_u64(&pc)));
    return name ? (strid)*name : 0;
}

strid track_event_class_name(const struct importer *im, strid obfuscated)
{
    const struct track_event_translations *t = track_event_translations(im);
    const uint64_t *name = t ? u64map_get(&t->classes, obfuscated) : NULL;
    return name ? (strid)*name : 0;
}
