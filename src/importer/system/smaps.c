/* Owns SmapsPacket: the memory mappings of a process. */
#include "importer/system/system_internal.h"

struct smaps_entry {
    uint64_t v[16]; /* scalars by field number of SmapsEntry */
    strid s[16];    /* strings by field number */
};

static void add_entry(struct packet *p, uint32_t upid, const struct smaps_entry *e)
{
    strid empty = import_str(p->m->im, "");
#define S(field) (e->s[field] ? e->s[field] : empty)
#define V(field) ((int64_t)e->v[field])
    profiler_smaps_insert(p->m->st, &(struct profiler_smaps_row){.upid = upid,
                                                                 .ts = p->ts,
                                                                 .path = S(1),
                                                                 .path_trimmed = S(1),
                                                                 .aggregate_count = 1,
                                                                 .size_kb = V(2),
                                                                 .private_dirty_kb = V(3),
                                                                 .swap_kb = V(4),
                                                                 .file_name = S(5),
                                                                 .start_address = V(6),
                                                                 .module_timestamp = V(7),
                                                                 .module_debugid = S(8),
                                                                 .module_debug_path = S(9),
                                                                 .protection_flags = V(10),
                                                                 .private_clean_resident_kb = V(11),
                                                                 .shared_dirty_resident_kb = V(12),
                                                                 .shared_clean_resident_kb = V(13),
                                                                 .locked_kb = V(14),
                                                                 .proportional_resident_kb = V(15)});
#undef S
#undef V
}

void smaps_parse(struct packet *p)
{
    struct pb_field f, g;
    uint32_t pid = 0;
    if (pb_find(p->field, 1, &f))
        pid = pb_u32(&f);
    uint32_t upid = process_tracker_process(p->m->processes, pid);
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        if (f.id == 3) /* the packed form is not read: say so */
            stats_add(&p->m->st->stats, p->m->id, STAT_smaps_parser_errors, 1);
        if (f.id != 2)
            continue;
        struct smaps_entry e = {0};
        struct pb_cursor entry = pb_sub(&f);
        while (pb_next(&entry, &g)) {
            if (g.id >= 16)
                continue;
            if (g.wire == PB_BYTES)
                e.s[g.id] = import_slice(p->m->im, pb_bytes(&g));
            else
                e.v[g.id] = g.u;
        }
        if (entry.bad)
            stats_add(&p->m->st->stats, p->m->id, STAT_smaps_parser_errors, 1);
        add_entry(p, upid, &e);
    }
}
