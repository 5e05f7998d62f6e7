/* Imports SmapsPacket: the memory mappings of a process, one message each or packed into columns. */
#include "importer/profiling/profiling_internal.h"

#include "wire/fields.h"

struct smaps_entry {
    uint64_t v[16]; /* scalars by field number of SmapsEntry */
    strid s[16];    /* strings by field number; NULL for one that is absent */
};

static void add_entry(struct packet *p, uint32_t upid, const struct smaps_entry *e)
{
#define V(field) ((int64_t)e->v[field])
    profiler_smaps_insert(p->m->st, &(struct profiler_smaps_row){.upid = upid,
                                                                 .ts = p->ts,
                                                                 .path = e->s[1],
                                                                 .path_trimmed = e->s[1],
                                                                 .aggregate_count = 1,
                                                                 .size_kb = V(2),
                                                                 .private_dirty_kb = V(3),
                                                                 .swap_kb = V(4),
                                                                 .file_name = e->s[5],
                                                                 .start_address = V(6),
                                                                 .module_timestamp = V(7),
                                                                 .module_debugid = e->s[8],
                                                                 .module_debug_path = e->s[9],
                                                                 .protection_flags = V(10),
                                                                 .private_clean_resident_kb = V(11),
                                                                 .shared_dirty_resident_kb = V(12),
                                                                 .shared_clean_resident_kb = V(13),
                                                                 .locked_kb = V(14),
                                                                 .proportional_resident_kb = V(15)});
#undef V
}

/* --- PackedSmaps: each field a column, each mapping the same place in all of them ----------------------------------
 */

enum packed_field {
    STRING_TABLE = 1,
    NAME_ID = 2, /* in the string table, which begins with number 0 */
    AGGREGATE_COUNT = 3,
    SIZE_KB,
    RSS_KB,
    ANONYMOUS_KB,
    SWAP_KB,
    SHARED_CLEAN_KB,
    SHARED_DIRTY_KB,
    PRIVATE_CLEAN_KB,
    PRIVATE_DIRTY_KB,
    LOCKED_KB,
    PSS_KB,
    PSS_DIRTY_KB,
    SWAP_PSS_KB,
    PACKED_FIELDS,
};

static const char deleted[] = " (deleted)";

/* An entry of the string table: it may be named by many mappings. */
struct packed_path {
    strid whole, trimmed;
    bool is_deleted;
};

static struct packed_path packed_path(struct packet *p, struct slice path)
{
    size_t n = sizeof deleted - 1;
    struct packed_path e = {.whole = import_slice(p->m->im, path)};
    e.is_deleted = path.len >= n && !memcmp(path.p + path.len - n, deleted, n);
    e.trimmed = e.is_deleted ? import_slice(p->m->im, slice_of(path.p, path.len - n)) : e.whole;
    return e;
}

/* The next value of a column; 0 for one that was not recorded, or (*bad) is shorter than the others. */
static uint64_t next_value(struct pb_cursor *column, bool *bad)
{
    uint64_t v = 0;
    if (pb_next_packed(column, &v))
        return v;
    *bad |= column->end != NULL;
    return 0;
}

static void add_packed(struct packet *p, uint32_t upid, struct slice bytes)
{
    struct storage *st = p->m->st;
    struct pb_cursor columns[PACKED_FIELDS] = {0};
    VEC(struct packed_path)
    paths = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == STRING_TABLE && !vec_push(&paths, packed_path(p, pb_bytes(&f))))
            p->m->im->failed = true;
        else if (f.id > STRING_TABLE && f.id < PACKED_FIELDS)
            columns[f.id] = pb_sub(&f);
    }
    bool bad = c.bad, counted = columns[AGGREGATE_COUNT].p != NULL;
    strid empty = import_str(p->m->im, "");
    for (uint64_t name; pb_next_packed(&columns[NAME_ID], &name);) {
        bad |= name >= paths.n;
        struct packed_path path = name < paths.n ? paths.p[name] : (struct packed_path){empty, empty, false};
        uint64_t v[PACKED_FIELDS];
        for (unsigned field = AGGREGATE_COUNT; field < PACKED_FIELDS; field++)
            v[field] = next_value(&columns[field], &bad);
        profiler_smaps_insert(
            st, &(struct profiler_smaps_row){.upid = upid,
                                             .ts = p->ts,
                                             .path = path.whole,
                                             .path_trimmed = path.trimmed,
                                             .aggregate_count = counted ? (int64_t)(uint32_t)v[AGGREGATE_COUNT] : 1,
                                             .is_deleted = path.is_deleted,
                                             .size_kb = (int64_t)v[SIZE_KB],
                                             .private_dirty_kb = (int64_t)v[PRIVATE_DIRTY_KB],
                                             .swap_kb = (int64_t)v[SWAP_KB],
                                             .private_clean_resident_kb = (int64_t)v[PRIVATE_CLEAN_KB],
                                             .shared_dirty_resident_kb = (int64_t)v[SHARED_DIRTY_KB],
                                             .shared_clean_resident_kb = (int64_t)v[SHARED_CLEAN_KB],
                                             .locked_kb = (int64_t)v[LOCKED_KB],
                                             .proportional_resident_kb = (int64_t)v[PSS_KB],
                                             .rss_kb = (int64_t)v[RSS_KB],
                                             .anonymous_kb = (int64_t)v[ANONYMOUS_KB],
                                             .pss_dirty_kb = (int64_t)v[PSS_DIRTY_KB],
                                             .swap_pss_kb = (int64_t)v[SWAP_PSS_KB]});
    }
    for (unsigned field = NAME_ID; field < PACKED_FIELDS; field++)
        bad |= columns[field].bad || columns[field].p != columns[field].end; /* longer than the names */
    if (bad)
        stats_add(&st->stats, p->m->id, STAT_smaps_parser_errors, 1);
    vec_free(&paths);
}

void smaps_parse(struct packet *p)
{
    struct pb_field f, g;
    uint32_t pid = 0;
    if (pb_find(p->field, SMAPS_PACKET_PID, &f))
        pid = pb_u32(&f);
    uint32_t upid = process_tracker_process(p->m->processes, pid);
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        if (f.id == SMAPS_PACKET_PACKED_ENTRIES)
            add_packed(p, upid, pb_bytes(&f));
        if (f.id != SMAPS_PACKET_ENTRIES)
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
