/* The messages that tell of stacks (Callstack, Frame, Mapping and the strings they name): from numbers to rows.
 *
 * They are interned on the sequence, or, in recordings of the first heap profilers, part of the ProfilePacket. */
#include "importer/profiling/jit.h"
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"
#include "wire/fields.h"

/* Where the messages of a kind are: the field of InternedData, and of ProfilePacket. */
enum message_kind { CALLSTACK, FRAME, MAPPING, FUNCTION_NAME, BUILD_ID, MAPPING_PATH, SOURCE_PATH, MESSAGE_KINDS };
static const struct {
    uint8_t interned, own;
} places[MESSAGE_KINDS] = {
    [CALLSTACK] = {INTERNED_DATA_CALLSTACKS, PROFILE_PACKET_CALLSTACKS},
    [FRAME] = {INTERNED_DATA_FRAMES, PROFILE_PACKET_FRAMES},
    [MAPPING] = {INTERNED_DATA_MAPPINGS, PROFILE_PACKET_MAPPINGS},
    [FUNCTION_NAME] = {INTERNED_DATA_FUNCTION_NAMES, PROFILE_PACKET_STRINGS},
    [BUILD_ID] = {INTERNED_DATA_BUILD_IDS, PROFILE_PACKET_STRINGS},
    [MAPPING_PATH] = {INTERNED_DATA_MAPPING_PATHS, PROFILE_PACKET_STRINGS},
    [SOURCE_PATH] = {INTERNED_DATA_SOURCE_PATHS, PROFILE_PACKET_STRINGS},
};

enum { MAX_PATH_BYTES = 4096 };

struct lookup {
    struct machine_ctx *m;
    struct seq_generation *g;
    struct own_messages *own; /* NULL: all is interned */
    uint32_t upid;
    uint32_t areas; /* where it makes code: rows that were read before it did are read anew */
    bool *moving;   /* set when a frame lies in code that may be other code at another time */
};

static void count(const struct lookup *l, enum stat_key stat)
{
    stats_add(&l->m->st->stats, l->m->id, stat, 1);
}

static struct slice find(const struct lookup *l, enum message_kind kind, uint64_t iid)
{
    if (l->own) {
        const uint64_t *at = u64map_get(&l->own->index, (uint64_t)places[kind].own << 56 ^ iid);
        if (at)
            return l->own->messages.p[*at - 1];
    }
    return interned_find(l->g, places[kind].interned, iid);
}

/* The text of an interned string; empty (counted) when it is not there. Number 0 means the empty one. */
static struct slice text_of(const struct lookup *l, enum message_kind kind, uint64_t iid)
{
    struct pb_field f;
    struct slice message = find(l, kind, iid);
    if (pb_find(message, INTERNED_STRING_STR, &f))
        return pb_bytes(&f);
    if (iid && !message.p)
        count(l, STAT_stackprofile_invalid_string_id);
    return slice_of("", 0);
}

/* Where the row of a message is remembered: with the packet's own ones, whose numbers are used again, or for good. */
static struct u64map *rows_of(const struct lookup *l)
{
    return l->own ? &l->own->rows : &l->m->profiling->interned;
}

static uint64_t row_key(const struct lookup *l, enum message_kind kind, uint64_t iid)
{
    uint64_t key = hash_combine(hash_combine((uint64_t)(uintptr_t)l->g->interned, kind), iid);
    return l->areas ? hash_combine(hash_combine(key, l->upid), l->areas) : key;
}

/* The row of a message read before; UINT32_MAX when it was at fault, which counts for each use. False: not yet read. */
static bool recall(const struct lookup *l, enum message_kind kind, uint64_t iid, uint32_t *row)
{
    const uint64_t *known = u64map_get(rows_of(l), row_key(l, kind, iid));
    if (!known)
        return false;
    *row = (uint32_t)*known;
    if (*known >> 32)
        count(l, (enum stat_key)((*known >> 32) - 1));
    return true;
}

static uint32_t remember(const struct lookup *l, enum message_kind kind, uint64_t iid, uint64_t word)
{
    if (!u64map_set(rows_of(l), row_key(l, kind, iid), word))
        l->m->im->failed = true;
    return (uint32_t)word;
}

/* That a message is good for nothing, and how that counts: it may be long, and be meant by every sample. */
static uint32_t remember_fault(const struct lookup *l, enum message_kind kind, uint64_t iid, enum stat_key fault)
{
    return remember(l, kind, iid, ((uint64_t)fault + 1) << 32 | UINT32_MAX);
}

static uint32_t mapping_row(const struct lookup *l, uint64_t iid)
{
    uint32_t known;
    if (recall(l, MAPPING, iid, &known))
        return known;
    struct slice message = find(l, MAPPING, iid);
    if (!message.p)
        return UINT32_MAX;
    struct stack_profile_mapping_row row = {0};
    struct slice build_id = {0};
    char path[MAX_PATH_BYTES];
    size_t n = 0;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case MAPPING_BUILD_ID:
            build_id = text_of(l, BUILD_ID, pb_u64(&f));
            break;
        case MAPPING_START_OFFSET:
            row.start_offset = pb_i64(&f);
            break;
        case MAPPING_START:
            row.start = pb_i64(&f);
            break;
        case MAPPING_END:
            row.end = pb_i64(&f);
            break;
        case MAPPING_LOAD_BIAS:
            row.load_bias = pb_i64(&f);
            break;
        case MAPPING_PATH_STRING_IDS: { /* the parts of the path */
            struct slice part = text_of(l, MAPPING_PATH, pb_u64(&f));
            size_t take = part.len < MAX_PATH_BYTES - n ? part.len : MAX_PATH_BYTES - n;
            if (n < MAX_PATH_BYTES && take + 1 <= MAX_PATH_BYTES - n) {
                path[n++] = '/';
                if (take)
                    memcpy(path + n, part.p, take);
                n += take;
            }
            break;
        }
        case MAPPING_EXACT_OFFSET:
            row.exact_offset = pb_i64(&f);
            break;
        }
    }
    row.build_id = build_id_text(l->m, build_id);
    size_t skip = n > 1 && path[0] == '/' && path[1] == '/'; /* Chrome tells the path as one part */
    row.name = strpool_intern(&l->m->st->strings, path + skip, n - skip);
    return remember(l, MAPPING, iid, stack_profile_mapping(l->m, &row));
}

/* Frame.kind as the `type` of a frame. */
static const char *const frame_kinds[] = {NULL, "native", "kernel", "interpreted", "jit", "gc", "runtime"};

static uint32_t frame_row(const struct lookup *l, uint64_t iid)
{
    uint32_t known;
    if (recall(l, FRAME, iid, &known))
        return known;
    struct slice message = find(l, FRAME, iid);
    if (!message.p) {
        count(l, STAT_stackprofile_invalid_frame_id);
        return UINT32_MAX;
    }
    struct machine_ctx *m = l->m;
    struct stack_profile_frame_row row = {.name = l->own ? import_str(m->im, "") : 0}; /* its string 0 is '' */
    struct source_line source = {.line = COL_NULL};
    uint64_t mapping = 0;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case FRAME_FUNCTION_NAME_ID:
            row.name = import_slice(m->im, text_of(l, FUNCTION_NAME, pb_u64(&f)));
            break;
        case FRAME_MAPPING_ID:
            mapping = pb_u64(&f);
            break;
        case FRAME_REL_PC:
            row.rel_pc = pb_i64(&f);
            break;
        case FRAME_SOURCE_PATH_IID:
            source.file = import_slice(m->im, text_of(l, SOURCE_PATH, pb_u64(&f)));
            break;
        case FRAME_LINE_NUMBER:
            source.line = pb_u32(&f);
            break;
        case FRAME_KIND:
            if (pb_u64(&f) < sizeof frame_kinds / sizeof *frame_kinds && frame_kinds[pb_u64(&f)])
                row.type = import_str(m->im, frame_kinds[pb_u64(&f)]);
            break;
        case FRAME_KIND_STR:
            row.type = import_slice(m->im, pb_bytes(&f));
            break;
        }
    }
    uint32_t in = mapping ? mapping_row(l, mapping) : stack_profile_no_mapping(m, "");
    if (in == UINT32_MAX) {
        count(l, STAT_stackprofile_invalid_mapping_id);
        return remember_fault(l, FRAME, iid, STAT_stackprofile_invalid_mapping_id);
    }
    row.mapping = in;
    if (jit_covers(m->profiling, l->upid, in)) {
        *l->moving = true;
        return jit_frame(m->profiling, l->upid, &row);
    }
    source.function = row.name;
    bool has_source = source.file || source.line != COL_NULL;
    return remember(l, FRAME, iid, stack_profile_frame(m, &row, has_source ? &source : NULL));
}

uint32_t stack_messages_callsite(struct machine_ctx *m, struct seq_generation *g, uint32_t upid,
                                 struct own_messages *own, uint64_t callstack_iid)
{
    bool moving = false;
    struct lookup l = {m, g, own, upid, jit_areas(m->profiling, upid), &moving};
    uint32_t known;
    if (recall(&l, CALLSTACK, callstack_iid, &known))
        return known;
    struct slice message = find(&l, CALLSTACK, callstack_iid);
    if (!message.p) {
        count(&l, STAT_stackprofile_invalid_callstack_id);
        return CALLSITE_NONE;
    }
    uint32_t callsite = CALLSITE_NONE;
    struct pb_numbers frames = pb_numbers(message, CALLSTACK_FRAME_IDS);
    for (uint64_t iid; pb_next_number(&frames, &iid);) {
        uint32_t frame = frame_row(&l, iid);
        if (frame == UINT32_MAX)
            return remember_fault(&l, CALLSTACK, callstack_iid,
                                  find(&l, FRAME, iid).p ? STAT_stackprofile_invalid_mapping_id
                                                         : STAT_stackprofile_invalid_frame_id);
        callsite = stack_profile_callsite(m, callsite, frame);
        if (callsite == CALLSITE_NONE)
            return CALLSITE_NONE; /* out of memory */
    }
    if (moving)
        return callsite;
    if (callsite != CALLSITE_NONE)
        return remember(&l, CALLSTACK, callstack_iid, callsite);
    count(&l, STAT_stackprofile_empty_callstack);
    return remember_fault(&l, CALLSTACK, callstack_iid, STAT_stackprofile_empty_callstack);
}

uint32_t stack_profile_interned(struct machine_ctx *m, struct seq_generation *g, uint32_t upid, uint64_t callstack_iid)
{
    return stack_messages_callsite(m, g, upid, NULL, callstack_iid);
}

uint32_t stack_profile_interned_mapping(struct machine_ctx *m, struct seq_generation *g, uint64_t mapping_iid)
{
    return mapping_row(&(struct lookup){.m = m, .g = g}, mapping_iid);
}

struct source_line source_line_read(struct machine_ctx *m, struct slice message)
{
    struct source_line source = {.function = import_str(m->im, ""), .line = COL_NULL};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == LINE_FUNCTION_NAME)
            source.function = import_slice(m->im, pb_bytes(&f));
        else if (f.id == LINE_SOURCE_FILE_NAME && pb_bytes(&f).len)
            source.file = import_slice(m->im, pb_bytes(&f));
        else if (f.id == LINE_LINE_NUMBER && pb_i32(&f) >= 0)
            source.line = pb_i32(&f);
    }
    return source;
}

uint32_t stack_profile_inline(struct machine_ctx *m, struct slice callstack, const char *mapping_name)
{
    uint32_t callsite = CALLSITE_NONE, mapping = stack_profile_no_mapping(m, mapping_name);
    struct pb_cursor c = pb_cursor(callstack);
    struct pb_field f;
    while (mapping != UINT32_MAX && pb_next(&c, &f)) {
        if (f.id != TRACK_EVENT_INLINE_CALLSTACK_FRAMES)
            continue;
        struct source_line source = source_line_read(m, pb_bytes(&f));
        uint32_t row =
            stack_profile_frame(m, &(struct stack_profile_frame_row){.name = source.function, .mapping = mapping},
                                source.file || source.line != COL_NULL ? &source : NULL);
        if (row == UINT32_MAX || (callsite = stack_profile_callsite(m, callsite, row)) == CALLSITE_NONE)
            return CALLSITE_NONE;
    }
    if (callsite == CALLSITE_NONE)
        stats_add(&m->st->stats, m->id, STAT_stackprofile_empty_callstack, 1);
    return callsite;
}
