/* Owns names that come into a trace after it was recorded: functions at addresses, classes behind obfuscated names. */
#include "base/hash.h"
#include "importer/track_event/te_internal.h"

enum { INTERNED_BUILD_ID = 16, INTERNED_MAPPING = 19, INTERNED_UNSYMBOLIZED = 28 };

static uint64_t address_key(struct slice build_id, uint64_t address)
{
    return hash_combine(hash_bytes(build_id.p, build_id.len), address);
}

enum tokenize_result te_tokenize_module_symbols(struct packet *p)
{
    struct te_translations *t = te_translations(p->m->im);
    struct pb_field f, build_id, address, line, name;
    struct slice id = pb_find(p->field, 2, &build_id) ? pb_bytes(&build_id) : slice_of(NULL, 0);
    struct pb_cursor c = pb_cursor(p->field);
    while (t && pb_next(&c, &f)) {
        if (f.id != 3 || !pb_find(pb_bytes(&f), 1, &address) || !pb_find(pb_bytes(&f), 2, &line) ||
            !pb_find(pb_bytes(&line), 1, &name))
            continue;
        if (!u64map_set(&t->functions, address_key(id, pb_u64(&address)), import_slice(p->m->im, pb_bytes(&name))))
            p->m->im->failed = true;
    }
    return TOKENIZE_DONE;
}

enum tokenize_result te_tokenize_deobfuscation(struct packet *p)
{
    struct te_translations *t = te_translations(p->m->im);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f, from, to;
    while (t && pb_next(&c, &f)) {
        if (f.id != 3 || !pb_find(pb_bytes(&f), 1, &from) || !pb_find(pb_bytes(&f), 2, &to))
            continue;
        if (!u64map_set(&t->classes, import_slice(p->m->im, pb_bytes(&from)), import_slice(p->m->im, pb_bytes(&to))))
            p->m->im->failed = true;
    }
    return TOKENIZE_DONE;
}

strid te_function_name(const struct importer *im, struct seq_generation *g, uint64_t location_iid)
{
    struct pb_field mapping, pc, build_id, bytes;
    const struct te_translations *t = te_translations(im);
    struct slice location = interned_find(g, INTERNED_UNSYMBOLIZED, location_iid);
    if (!t || !t->functions.n || !pb_find(location, 2, &mapping) || !pb_find(location, 3, &pc) ||
        !pb_find(interned_find(g, INTERNED_MAPPING, pb_u64(&mapping)), 2, &build_id) ||
        !pb_find(interned_find(g, INTERNED_BUILD_ID, pb_u64(&build_id)), 2, &bytes))
        return 0;
    const uint64_t *name = u64map_get(&t->functions, address_key(pb_bytes(&bytes), pb_u64(&pc)));
    return name ? (strid)*name : 0;
}

strid te_class_name(const struct importer *im, strid obfuscated)
{
    const struct te_translations *t = te_translations(im);
    const uint64_t *name = t ? u64map_get(&t->classes, obfuscated) : NULL;
    return name ? (strid)*name : 0;
}
