/* Imports SmapsPacket: the memory mappings of a process, one message each or packed into columns. */
#include "importer/profiling/profiling_internal.h"

#include "wire/fields.h"

static const char deleted[] = " (deleted)";

/* A path, and what it is without the kernel's mark of files that are gone. */
struct smaps_path {
    strid whole, trimmed;
    bool is_deleted;
};

static struct smaps_path smaps_path(struct packet *p, struct slice path)
{
    size_t n = sizeof deleted - 1;
    struct smaps_path e = {.whole = import_slice(p->m->im, path)};
    e.is_deleted = path.len >= n && !memcmp(path.p + path.len - n, deleted, n);
    e.trimmed = e.is_deleted ? import_slice(p->m->im, slice_of(path.p, path.len - n)) : e.whole;
    return e;
}

struct smaps_entry {
    uint64_t v[16]; /* scalars by field number of SmapsEntry */
    strid s[16];    /* strings by field number; NULL for one that is absent */
    struct smaps_path path;
};

static void add_entry(struct packet *p, uint32_t upid, const struct smaps_entry *e)
{
#define V(field) ((int64_t)e->v[field])
    profiler_smaps_insert(p->m->st, &(struct profiler_smaps_row){.upid = upid,
                                                                 .ts = p->ts,
                                                                 .path = e->path.whole,
                                                                 .path_trimmed = e->path.trimmed,
                                                                 .aggregate_count = 1,
                                                                 .is_deleted = e->path.is_deleted,
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

/* --- PackedSmaps: each field a column, each mapping the same place in all of them --- */

enum packed_field {
    STRING_TABLE = 1,
    NAME_ID = 2,     /* in the string table, which begins with number 0 */
    AGGREGATE_COUNT, /* of mappings that were added up by path: the string table has the paths in their order */
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

struct packed {
    VEC(struct smaps_path)
    paths;
    struct pb_cursor columns[PACKED_FIELDS];
    bool has[PACKED_FIELDS]; /* columns that rows have a value of; others are 0 */
    bool added_up, bad;
};

static void read_packed(struct packet *p, struct slice bytes, struct packed *x)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == STRING_TABLE && !vec_push(&x->paths, smaps_path(p, pb_bytes(&f))))
            p->m->im->failed = true;
        else if (f.id > STRING_TABLE && f.id < PACKED_FIELDS)
            x->columns[f.id] = pb_sub(&f);
    }
    x->bad = c.bad;
    x->added_up = x->columns[AGGREGATE_COUNT].p != NULL;
    for (unsigned field = SIZE_KB; field < PACKED_FIELDS; field++)
        x->has[field] = x->columns[field].p != x->columns[field].end;
    x->has[x->added_up ? AGGREGATE_COUNT : NAME_ID] = true;
}

/* The values of the next row, by field; false at the end of a column, which is bad where another one goes on. */
static bool next_row(struct packed *x, uint64_t v[PACKED_FIELDS])
{
    bool any = false;
    for (unsigned field = NAME_ID; field < PACKED_FIELDS; field++) {
        v[field] = 0;
        if (!x->has[field])
            continue;
        if (!pb_next_packed(&x->columns[field], &v[field])) {
            x->bad |= any;
            return false;
        }
        any = true;
    }
    return true;
}

static void add_row(struct packet *p, uint32_t upid, const struct smaps_path *path, const uint64_t v[PACKED_FIELDS])
{
#define V(field) ((int64_t)v[field])
    profiler_smaps_insert(p->m->st, &(struct profiler_smaps_row){.upid = upid,
                                                                 .ts = p->ts,
                                                                 .path = path->whole,
                                                                 .path_trimmed = path->trimmed,
                                                                 .aggregate_count = (uint32_t)v[AGGREGATE_COUNT],
                                                                 .is_deleted = path->is_deleted,
                                                                 .size_kb = V(SIZE_KB),
                                                                 .private_dirty_kb = V(PRIVATE_DIRTY_KB),
                                                                 .swap_kb = V(SWAP_KB),
                                                                 .private_clean_resident_kb = V(PRIVATE_CLEAN_KB),
                                                                 .shared_dirty_resident_kb = V(SHARED_DIRTY_KB),
                                                                 .shared_clean_resident_kb = V(SHARED_CLEAN_KB),
                                                                 .locked_kb = V(LOCKED_KB),
                                                                 .proportional_resident_kb = V(PSS_KB),
                                                                 .rss_kb = V(RSS_KB),
                                                                 .anonymous_kb = V(ANONYMOUS_KB),
                                                                 .pss_dirty_kb = V(PSS_DIRTY_KB),
                                                                 .swap_pss_kb = V(SWAP_PSS_KB)});
#undef V
}

/* Rows end with the shortest column, or with a name that is not there; either counts. */
static void add_packed(struct packet *p, uint32_t upid, struct slice bytes)
{
    struct packed x = {0};
    read_packed(p, bytes, &x);
    uint64_t v[PACKED_FIELDS];
    size_t row = 0;
    for (; next_row(&x, v); row++) {
        uint64_t name = x.added_up ? row : v[NAME_ID];
        if (name >= x.paths.n) {
            x.bad = true;
            break;
        }
        if (!x.added_up)
            v[AGGREGATE_COUNT] = 1;
        add_row(p, upid, &x.paths.p[name], v);
    }
    x.bad |= x.added_up && row != x.paths.n;
    for (unsigned field = NAME_ID; field < PACKED_FIELDS; field++)
        x.bad |= x.columns[field].bad || x.columns[field].p != x.columns[field].end;
    if (x.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_smaps_parser_errors, 1);
    vec_free(&x.paths);
}

static void add_entry_of(struct packet *p, uint32_t upid, struct pb_cursor entry)
{
    struct smaps_entry e = {0};
    struct pb_field f;
    while (pb_next(&entry, &f)) {
        if (f.id == SMAPS_ENTRY_PATH)
            e.path = smaps_path(p, pb_bytes(&f));
        else if (f.id < 16 && f.wire == PB_BYTES)
            e.s[f.id] = import_slice(p->m->im, pb_bytes(&f));
        else if (f.id < 16)
            e.v[f.id] = f.u;
    }
    if (entry.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_smaps_parser_errors, 1);
    add_entry(p, upid, &e);
}

void smaps_parse(struct packet *p)
{
    struct pb_field f;
    uint32_t pid = 0;
    if (pb_find(p->field, SMAPS_PACKET_PID, &f))
        pid = pb_u32(&f);
    uint32_t upid = process_tracker_process(p->m->processes, pid);
    if (pb_find(p->field, SMAPS_PACKET_PACKED_ENTRIES, &f)) { /* the newer form stands for the other */
        add_packed(p, upid, pb_bytes(&f));
        return;
    }
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == SMAPS_PACKET_ENTRIES)
            add_entry_of(p, upid, pb_sub(&f));
}
