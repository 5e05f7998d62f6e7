/* The messages that tell of stacks (Callstack, Frame, Mapping and the strings they name): from numbers to rows.
 *
 * They are interned on the sequence, or, in recordings of the first heap profilers, part of the ProfilePacket. */
#include "importer/profiling/jit.h"
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"
#include "wire/fields.h"

/* Where the messages of a kind are: the field of InternedData, and of ProfilePacket; and how one counts that is meant
 * and not there. */
enum message_kind { CALLSTACK, FRAME, MAPPING, FUNCTION_NAME, BUILD_ID, MAPPING_PATH, SOURCE_PATH, MESSAGE_KINDS };
static const struct {
    uint8_t interned, own;
    enum stat_key missing;
} places[MESSAGE_KINDS] = {
    [CALLSTACK] = {INTERNED_DATA_CALLSTACKS, PROFILE_PACKET_CALLSTACKS, STAT_stackprofile_invalid_callstack_id},
    [FRAME] = {INTERNED_DATA_FRAMES, PROFILE_PACKET_FRAMES, STAT_stackprofile_invalid_frame_id},
    [MAPPING] = {INTERNED_DATA_MAPPINGS, PROFILE_PACKET_MAPPINGS, STAT_stackprofile_invalid_mapping_id},
    [FUNCTION_NAME] = {INTERNED_DATA_FUNCTION_NAMES, PROFILE_PACKET_STRINGS, STAT_stackprofile_invalid_string_id},
    [BUILD_ID] = {INTERNED_DATA_BUILD_IDS, PROFILE_PACKET_STRINGS, STAT_stackprofile_invalid_string_id},
    [MAPPING_PATH] = {INTERNED_DATA_MAPPING_PATHS, PROFILE_PACKET_STRINGS, STAT_stackprofile_invalid_string_id},
    [SOURCE_PATH] = {INTERNED_DATA_SOURCE_PATHS, PROFILE_PACKET_STRINGS, STAT_stackprofile_invalid_string_id},
};

enum { MAX_PATH_BYTES = 4096 };

struct lookup {
    struct machine_ctx *m;
    struct seq_generation *g;
    struct own_messages *own; /* NULL: all is interned */
    uint32_t upid;
    uint32_t areas;      /* where it makes code: rows that were read before it did are read anew */
    bool moving;         /* a frame lies in code that may be other code at another time */
    bool owned;          /* the row found last is the process's own: of what lies in its memory */
    enum stat_key fault; /* what was counted last */
};

static void count(struct lookup *l, enum stat_key stat)
{
    stats_add(&l->m->st->stats, l->m->id, stat, 1);
    l->fault = stat;
}

/* A packet with messages of its own means those alone. */
static struct slice find(const struct lookup *l, enum message_kind kind, uint64_t iid)
{
    if (!l->own)
        return interned_find(l->g, places[kind].interned, iid);
    const uint64_t *at = u64map_get(&l->own->index, (uint64_t)places[kind].own << 56 ^ iid);
    return at ? l->own->messages.p[*at - 1] : slice_of(NULL, 0);
}

/* Number 0 is the empty text of names and build ids; packets with messages of their own say so again with each dump but
 * the first. */
static bool is_no_text(const struct lookup *l, enum message_kind kind, uint64_t iid)
{
    return !iid && (l->own ? !l->own->later : kind != MAPPING_PATH);
}

/* The text of an interned string. False (counted): it is not there. */
static bool text_of(struct lookup *l, enum message_kind kind, uint64_t iid, struct slice *text)
{
    struct pb_field f;
    *text = slice_of("", 0);
    if (is_no_text(l, kind, iid))
        return true;
    struct slice message = find(l, kind, iid);
    if (pb_find(message, INTERNED_STRING_STR, &f))
        *text = pb_bytes(&f);
    if (message.p)
        return true;
    count(l, places[kind].missing);
    return false;
}

/* Where the row of a message is remembered: with the packet's own ones, whose numbers are used again, or for good. */
static struct u64map *rows_of(const struct lookup *l)
{
    return l->own ? &l->own->rows : &l->m->profiling->interned;
}

static uint64_t row_key(const struct lookup *l, enum message_kind kind, uint64_t iid)
{
    uint64_t key = hash_combine(
        hash_combine((l->own ? 0 : (uint64_t)(uintptr_t)l->g->interned) ^ l->m->profiling->secret, kind), iid);
    bool of_code = l->areas && (kind == FRAME || kind == CALLSTACK);
    return of_code ? hash_combine(hash_combine(key, l->upid), l->areas) : key;
}

/* Two processes that name one mapping of their memory have a row each, and so have the frames and stacks in it. The
 * first process finds its rows under the plain key, others under one of their own. */
static uint64_t row_key_of_process(const struct lookup *l, uint64_t key)
{
    return hash_combine(key, (uint64_t)l->upid << 32 | 1);
}

/* What is remembered: a row and whose it is (upid + 1, 0: anybody's); or that there is none, and what counts then. */
static uint64_t word_of(uint32_t row, uint32_t high)
{
    return (uint64_t)high << 32 | row;
}

/* Reading a stack again for each process that names it makes more rows than the recording has bytes. Beyond what any
 * recording needs, processes share the first one's. */
static bool may_read_again(const struct lookup *l, size_t bytes)
{
    enum { FREE_BYTES = 1 << 21, BYTES_PER_SAMPLE = 32 };
    struct profiling_machine *s = l->m->profiling;
    uint64_t most = FREE_BYTES + (uint64_t)BYTES_PER_SAMPLE * l->m->st->t[T_profiler_sample].n_rows;
    if (s->read_again + bytes > most)
        return false;
    s->read_again += bytes;
    return true;
}

/* The row of a message read before; UINT32_MAX when it was at fault, which counts for each use. False: not yet read. */
static bool recall(struct lookup *l, enum message_kind kind, uint64_t iid, uint32_t *row)
{
    uint64_t key = row_key(l, kind, iid);
    const uint64_t *known = u64map_get(rows_of(l), key);
    if (!known)
        return false;
    uint32_t owner = (uint32_t)*known == UINT32_MAX ? 0 : (uint32_t)(*known >> 32);
    if (owner && owner != l->upid + 1) {
        const uint64_t *own = u64map_get(rows_of(l), row_key_of_process(l, key));
        if (!own && (kind != CALLSTACK || may_read_again(l, find(l, kind, iid).len)))
            return false;
        known = own ? own : known;
    }
    *row = (uint32_t)*known;
    l->owned = owner != 0;
    if (*row != UINT32_MAX)
        return true;
    count(l, (enum stat_key)((*known >> 32) - 1));
    if (!l->own && l->fault != STAT_stackprofile_empty_callstack)
        stats_add(&l->m->st->stats, l->m->id, STAT_interned_data_tokenizer_errors, 1);
    return true;
}

static uint32_t remember_word(const struct lookup *l, enum message_kind kind, uint64_t iid, uint64_t word)
{
    struct u64map *rows = rows_of(l);
    uint64_t key = row_key(l, kind, iid);
    if (u64map_get(rows, key))
        key = row_key_of_process(l, key);
    if (!u64map_set(rows, key, word))
        l->m->im->failed = true;
    return (uint32_t)word;
}

static uint32_t remember(struct lookup *l, enum message_kind kind, uint64_t iid, uint32_t row, bool owned)
{
    l->owned = owned;
    return remember_word(l, kind, iid, word_of(row, owned ? l->upid + 1 : 0));
}

/* That a message is good for nothing, for what was counted last: it may be long, and be meant by every sample. Interned
 * ones count the same with each use; those of a packet are as if they had not been sent. */
static uint32_t remember_fault(const struct lookup *l, enum message_kind kind, uint64_t iid)
{
    enum stat_key fault = l->own ? places[kind].missing : l->fault;
    return remember_word(l, kind, iid, word_of(UINT32_MAX, (uint32_t)fault + 1));
}

/* The same as an id. That of a long one is remembered: each of many frames may mean it. */
static bool text_id(struct lookup *l, enum message_kind kind, uint64_t iid, strid *id)
{
    enum { LONG = 256 };
    struct slice text;
    const uint64_t *known = u64map_get(rows_of(l), row_key(l, kind, iid));
    if (known) {
        *id = (strid)*known;
        return true;
    }
    if (!text_of(l, kind, iid, &text))
        return false;
    *id = kind == BUILD_ID ? build_id_text(l->m, text) : import_slice(l->m->im, text);
    if (text.len > LONG)
        remember_word(l, kind, iid, *id);
    return true;
}

/* Adds a part of a mapping's path. */
static size_t add_part(char *path, size_t n, struct slice part)
{
    size_t take = part.len < MAX_PATH_BYTES - n ? part.len : MAX_PATH_BYTES - n;
    if (n >= MAX_PATH_BYTES || take + 1 > MAX_PATH_BYTES - n)
        return n;
    path[n++] = '/';
    if (take)
        memcpy(path + n, part.p, take);
    return n + take;
}

/* The parts of a path end before one that is not there. */
static strid mapping_name(struct lookup *l, struct slice message)
{
    char path[MAX_PATH_BYTES];
    size_t n = 0;
    struct slice part;
    struct pb_numbers parts = pb_numbers(message, MAPPING_PATH_STRING_IDS);
    for (uint64_t iid; pb_next_number(&parts, &iid) && text_of(l, MAPPING_PATH, iid, &part);)
        n = add_part(path, n, part);
    size_t skip = n > 1 && path[0] == '/' && path[1] == '/'; /* Chrome tells the path as one part */
    return strpool_intern(&l->m->st->strings, path + skip, n - skip);
}

static uint32_t mapping_row(struct lookup *l, uint64_t iid)
{
    uint32_t known;
    if (recall(l, MAPPING, iid, &known))
        return known;
    struct slice message = find(l, MAPPING, iid);
    if (!message.p) {
        count(l, places[MAPPING].missing);
        return UINT32_MAX;
    }
    struct stack_profile_mapping_row row = {0};
    uint64_t build_id_iid = 0;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case MAPPING_BUILD_ID:
            build_id_iid = pb_u64(&f);
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
        case MAPPING_EXACT_OFFSET:
            row.exact_offset = pb_i64(&f);
            break;
        }
    }
    row.name = mapping_name(l, message);
    if (!text_id(l, BUILD_ID, build_id_iid, &row.build_id))
        return remember_fault(l, MAPPING, iid);
    bool owned = !l->own && l->upid != UPID_NONE && row.start != row.end;
    return remember(l, MAPPING, iid,
                    owned ? stack_profile_mapping_of_process(l->m, l->upid, &row) : stack_profile_mapping(l->m, &row),
                    owned);
}

/* Frame.kind as the `type` of a frame. */
static const char *const frame_kinds[] = {NULL, "native", "kernel", "interpreted", "jit", "gc", "runtime"};

/* What a Frame says. The texts' numbers stay numbers. */
struct frame_message {
    uint64_t mapping, function, source_path;
    int64_t rel_pc, line; /* line COL_NULL: not told */
    strid type;
};

static struct frame_message read_frame(struct machine_ctx *m, struct slice message)
{
    struct frame_message x = {.line = COL_NULL};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case FRAME_FUNCTION_NAME_ID:
            x.function = pb_u64(&f);
            break;
        case FRAME_MAPPING_ID:
            x.mapping = pb_u64(&f);
            break;
        case FRAME_REL_PC:
            x.rel_pc = pb_i64(&f);
            break;
        case FRAME_SOURCE_PATH_IID:
            x.source_path = pb_u64(&f);
            break;
        case FRAME_LINE_NUMBER:
            x.line = pb_u32(&f);
            break;
        case FRAME_KIND:
            if (pb_u64(&f) < sizeof frame_kinds / sizeof *frame_kinds && frame_kinds[pb_u64(&f)])
                x.type = import_str(m->im, frame_kinds[pb_u64(&f)]);
            break;
        case FRAME_KIND_STR:
            x.type = import_slice(m->im, pb_bytes(&f));
            break;
        }
    }
    return x;
}

static uint32_t frame_row(struct lookup *l, uint64_t iid)
{
    uint32_t known;
    if (recall(l, FRAME, iid, &known))
        return known;
    struct slice message = find(l, FRAME, iid);
    strid text;
    if (!message.p) {
        count(l, places[FRAME].missing);
        return UINT32_MAX;
    }
    struct machine_ctx *m = l->m;
    struct frame_message x = read_frame(m, message);
    bool by_name = !x.mapping && !l->own; /* known by its name alone; has a symbol in any case */
    struct stack_profile_frame_row row = {.rel_pc = by_name ? 0 : x.rel_pc, .type = x.type};
    struct source_line source = {.line = x.line};
    uint32_t in = x.mapping ? mapping_row(l, x.mapping) : stack_profile_no_mapping(m, "");
    bool owned = x.mapping && l->owned;
    if (in == UINT32_MAX || !text_id(l, FUNCTION_NAME, x.function, &text))
        return remember_fault(l, FRAME, iid);
    row.mapping = in;
    if (x.function || l->own) /* the empty name of a packet is '' */
        row.name = text;
    if (x.source_path && !text_id(l, SOURCE_PATH, x.source_path, &source.file))
        return remember_fault(l, FRAME, iid);
    if (jit_covers(m->profiling, l->upid, in)) {
        l->moving = true;
        return jit_frame(m->profiling, l->upid, &row);
    }
    source.function = row.name;
    struct table *frames = &m->st->t[T_stack_profile_frame];
    uint32_t before = frames->n_rows, frame = stack_profile_frame(m, &row, by_name ? &source : NULL);
    if (frames->n_rows > before && !by_name && (source.file || source.line != COL_NULL)) /* the first to tell a line */
        ROW_SET(m->st, stack_profile_frame, symbol_set_id, frame, stack_profile_symbols(m, &source, 1));
    if (frame != UINT32_MAX && x.type) /* another message of the same frame may not have said it */
        ROW_SET(m->st, stack_profile_frame, type, frame, x.type);
    return remember(l, FRAME, iid, frame, owned);
}

static uint32_t callsite_of(struct lookup *l, uint64_t iid)
{
    uint32_t known;
    if (recall(l, CALLSTACK, iid, &known))
        return known;
    struct slice message = find(l, CALLSTACK, iid);
    if (!message.p) {
        count(l, places[CALLSTACK].missing);
        return CALLSITE_NONE;
    }
    uint32_t callsite = CALLSITE_NONE;
    bool owned = false;
    struct pb_numbers frames = pb_numbers(message, CALLSTACK_FRAME_IDS);
    for (uint64_t frame_iid; pb_next_number(&frames, &frame_iid);) {
        uint32_t frame = frame_row(l, frame_iid);
        owned = owned || l->owned;
        if (frame == UINT32_MAX)
            return remember_fault(l, CALLSTACK, iid);
        callsite = stack_profile_callsite(l->m, callsite, frame);
        if (callsite == CALLSITE_NONE)
            return CALLSITE_NONE; /* out of memory */
    }
    if (l->moving)
        return callsite;
    if (callsite != CALLSITE_NONE)
        return remember(l, CALLSTACK, iid, callsite, owned);
    count(l, STAT_stackprofile_empty_callstack);
    return remember_fault(l, CALLSTACK, iid);
}

void stack_messages_read_own(struct machine_ctx *m, struct slice profile_packet, struct own_messages *own)
{
    static const struct {
        uint8_t field;
        uint32_t (*row)(struct lookup *l, uint64_t iid);
    } in_order[] = {
        {PROFILE_PACKET_MAPPINGS, mapping_row},
        {PROFILE_PACKET_FRAMES, frame_row},
        {PROFILE_PACKET_CALLSTACKS, callsite_of},
    };
    struct lookup l = {.m = m, .own = own, .upid = UINT32_MAX};
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        struct pb_cursor c = pb_cursor(profile_packet);
        struct pb_field f, iid;
        while (pb_next(&c, &f))
            if (f.id == in_order[i].field && pb_find(pb_bytes(&f), INTERNED_STRING_IID, &iid))
                in_order[i].row(&l, pb_u64(&iid));
    }
}

uint32_t stack_messages_callsite(struct machine_ctx *m, struct seq_generation *g, uint32_t upid,
                                 struct own_messages *own, uint64_t callstack_iid)
{
    struct lookup l = {.m = m, .g = g, .own = own, .upid = upid};
    const uint64_t *known = own ? u64map_get(&own->rows, row_key(&l, CALLSTACK, callstack_iid)) : NULL;
    if (known && (uint32_t)*known != UINT32_MAX)
        return (uint32_t)*known;
    l.own = NULL;
    l.areas = jit_areas(m->profiling, upid);
    return callsite_of(&l, callstack_iid);
}

uint32_t stack_profile_interned(struct machine_ctx *m, struct seq_generation *g, uint32_t upid, uint64_t callstack_iid)
{
    return stack_messages_callsite(m, g, upid, NULL, callstack_iid);
}

uint32_t stack_profile_interned_mapping(struct machine_ctx *m, struct seq_generation *g, uint32_t upid,
                                        uint64_t mapping_iid)
{
    return mapping_row(&(struct lookup){.m = m, .g = g, .upid = upid}, mapping_iid);
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
        uint32_t row = stack_profile_frame(
            m, &(struct stack_profile_frame_row){.name = source.function, .mapping = mapping}, &source);
        if (row == UINT32_MAX || (callsite = stack_profile_callsite(m, callsite, row)) == CALLSITE_NONE)
            return CALLSITE_NONE;
    }
    if (callsite == CALLSITE_NONE)
        stats_add(&m->st->stats, m->id, STAT_stackprofile_empty_callstack, 1);
    return callsite;
}
