/* The tables of mappings, frames, callsites and symbols: one row for each that is different. */
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"

static uint64_t row_key(const int64_t *words, uint32_t n_key, uint64_t salt)
{
    uint64_t key = hash_u64(salt);
    for (uint32_t i = 0; i < n_key; i++)
        key = hash_combine(key, (uint64_t)words[i]);
    return key;
}

uint32_t row_intern(struct profiling_machine *s, struct u64map *index, struct table *t, const int64_t *words,
                    uint32_t n_key, uint64_t salt, bool *added)
{
    uint64_t key = row_key(words, n_key, salt ^ s->secret);
    for (;; key = hash_u64(key)) { /* another row may have the same hash */
        bool fresh;
        uint64_t *row = u64map_put(index, key, &fresh);
        if (!row)
            break;
        if (added)
            *added = fresh;
        if (fresh) {
            *row = table_append(t, words);
            if (*row == UINT32_MAX)
                u64map_del(index, key);
            else
                return (uint32_t)*row;
            break;
        }
        uint32_t i = 0;
        while (i < n_key && table_get(t, i, (uint32_t)*row) == words[i])
            i++;
        if (i == n_key)
            return (uint32_t)*row;
    }
    s->m->im->failed = true;
    return UINT32_MAX;
}

static uint64_t address_key(strid path, strid build_id, int64_t rel_pc)
{
    return hash_combine(hash_u64((uint64_t)path << 32 | build_id), (uint64_t)rel_pc);
}

/* Puts `row` in front of the list under `key`. */
static void add_to_list(struct profiling_machine *s, struct row_lists *lists, uint64_t key, uint32_t row)
{
    uint64_t *head = u64map_put(&lists->heads, key, NULL);
    if (head && vec_push(&lists->links, (struct row_link){row, (uint32_t)*head}))
        *head = lists->links.n;
    else
        s->m->im->failed = true;
}

static uint32_t list_head(const struct row_lists *lists, uint64_t key)
{
    const uint64_t *head = u64map_get(&lists->heads, key);
    return head ? (uint32_t)*head : 0;
}

static uint32_t intern_mapping(struct machine_ctx *m, const struct stack_profile_mapping_row *r, uint64_t salt)
{
    struct profiling_machine *s = m->profiling;
    int64_t words[stack_profile_mapping_n_columns] = {r->build_id, r->exact_offset, r->start_offset, r->start,
                                                      r->end,      r->load_bias,    r->name};
    return row_intern(s, &s->mappings, &m->st->t[T_stack_profile_mapping], words, stack_profile_mapping_n_columns, salt,
                      NULL);
}

uint32_t stack_profile_mapping(struct machine_ctx *m, const struct stack_profile_mapping_row *r)
{
    return intern_mapping(m, r, 0);
}

uint32_t stack_profile_mapping_of_process(struct machine_ctx *m, uint32_t upid,
                                          const struct stack_profile_mapping_row *r)
{
    return intern_mapping(m, r, hash_u64((uint64_t)upid + 1));
}

uint32_t stack_profile_no_mapping(struct machine_ctx *m, const char *name)
{
    return stack_profile_mapping(m, &(struct stack_profile_mapping_row){
                                        .build_id = import_str(m->im, ""), .end = -1, .name = import_str(m->im, name)});
}

static uint64_t salt_of(const struct source_line *source)
{
    return source ? hash_combine(source->file, (uint64_t)source->line) : 0;
}

void stack_profile_frame_ahead(struct machine_ctx *m, const struct stack_profile_frame_row *r,
                               const struct source_line *source)
{
    const int64_t words[stack_profile_frame_c_symbol_set_id] = {r->name, r->mapping, r->rel_pc};
    u64map_ahead(&m->profiling->frames,
                 row_key(words, stack_profile_frame_c_symbol_set_id, salt_of(source) ^ m->profiling->secret));
}

uint32_t stack_profile_frame(struct machine_ctx *m, const struct stack_profile_frame_row *r,
                             const struct source_line *source)
{
    struct profiling_machine *s = m->profiling;
    int64_t words[stack_profile_frame_n_columns] = {r->name,  r->mapping,           r->rel_pc,
                                                    COL_NULL, r->deobfuscated_name, r->type};
    uint64_t salt = salt_of(source);
    bool added = false;
    struct table *t = &m->st->t[T_stack_profile_frame];
    uint32_t row = row_intern(s, &s->frames, t, words, stack_profile_frame_c_symbol_set_id, salt, &added);
    if (!added || row == UINT32_MAX)
        return row;
    if (!vec_push(&s->frame_rows, row))
        m->im->failed = true;
    if (source)
        ROW_SET(m->st, stack_profile_frame, symbol_set_id, row, stack_profile_symbols(m, source, 1));
    return row;
}

uint32_t stack_profile_frame_of_code(struct machine_ctx *m, const struct stack_profile_frame_row *r, uint32_t code,
                                     int64_t symbol_set, bool *added)
{
    struct profiling_machine *s = m->profiling;
    int64_t words[stack_profile_frame_n_columns] = {r->name,    r->mapping,           r->rel_pc,
                                                    symbol_set, r->deobfuscated_name, r->type};
    uint64_t salt = hash_combine(hash_u64(1), code);
    *added = false;
    return row_intern(s, &s->frames, &m->st->t[T_stack_profile_frame], words, stack_profile_frame_c_symbol_set_id, salt,
                      added);
}

uint32_t stack_profile_callsite(struct machine_ctx *m, uint32_t parent, uint32_t frame)
{
    return stack_profile_callsite_from(m, parent, frame, 0);
}

/* Where a callsite is that was looked for. */
struct callsite_place {
    struct callsite_links *caller; /* whose list is to have it; NULL: the map has it */
    uint64_t *row;                 /* in the map */
    uint32_t known;                /* row + 1; 0: it is to be made */
};

/* No row has the numbers at the end, which are those of roots. */
static uint64_t callsite_key(uint32_t parent, uint32_t frame, uint32_t first)
{
    return (uint64_t)(parent == CALLSITE_NONE ? CALLSITE_NONE - first : parent) << 32 | frame;
}

/* Most callsites call few others, and those that were made together lie together: a list of two is quicker than the
 * map, which has the rest. (Measured: call stacks take 0.87 of the time.) */
static struct callsite_place find_callsite(struct profiling_machine *s, uint32_t parent, uint32_t frame, uint32_t first)
{
    enum { LISTED = 2 };
    bool added, root = parent == CALLSITE_NONE;
    struct callsite_place place = {.caller = root ? NULL : by_id_make(&s->callsite_links, parent)};
    uint32_t n = 0, at = place.caller ? place.caller->called : 0;
    for (; at; n++) {
        const struct callsite_links *links = by_id_find(&s->callsite_links, at - 1);
        if (links->frame == frame) {
            place.known = at;
            return place;
        }
        at = links->next;
    }
    if (place.caller && n < LISTED)
        return place;
    uint64_t key = callsite_key(parent, frame, first);
    struct known_callsite *known = &s->known_callsites[hash_u64(key) % KNOWN_CALLSITES];
    place.caller = NULL;
    if (known->row_plus_one && known->key == key) {
        place.known = known->row_plus_one;
        return place;
    }
    place.row = u64map_put(&s->callsites, key, &added);
    place.known = place.row && !added ? (uint32_t)*place.row + 1 : 0;
    if (place.known)
        *known = (struct known_callsite){key, place.known};
    return place;
}

uint32_t stack_profile_callsite_from(struct machine_ctx *m, uint32_t parent, uint32_t frame, uint32_t first)
{
    struct profiling_machine *s = m->profiling;
    struct table *t = &m->st->t[T_stack_profile_callsite];
    struct callsite_place place = find_callsite(s, parent, frame, first);
    if (place.known)
        return place.known - 1;
    bool root = parent == CALLSITE_NONE;
    struct callsite_links *links = by_id_make(&s->callsite_links, t->n_rows);
    int64_t depth = root ? first : ROW_GET(m->st, stack_profile_callsite, depth, parent) + 1;
    int64_t words[] = {depth, root ? COL_NULL : (int64_t)parent, frame};
    uint32_t row = links && (place.caller || place.row) ? table_append(t, words) : UINT32_MAX;
    if (row == UINT32_MAX) {
        if (place.row)
            u64map_del(&s->callsites, callsite_key(parent, frame, first));
        m->im->failed = true;
    } else if (place.row) {
        *place.row = row;
    } else {
        links->frame = frame;
        links->next = place.caller->called;
        place.caller->called = row + 1;
    }
    return row;
}

uint32_t stack_profile_symbols(struct machine_ctx *m, const struct source_line *lines, size_t n)
{
    uint32_t set = m->st->t[T_stack_profile_symbol].n_rows;
    for (size_t i = 0; i < n; i++)
        stack_profile_symbol_insert(m->st, &(struct stack_profile_symbol_row){.symbol_set_id = set,
                                                                              .name = lines[i].function,
                                                                              .source_file = lines[i].file,
                                                                              .line_number = lines[i].line,
                                                                              .inlined = COL_NULL});
    return set;
}

/* Most recordings are never asked: frames are indexed when somebody does. */
static void index_frames(struct machine_ctx *m)
{
    struct profiling_machine *s = m->profiling;
    for (size_t i = 0; i < s->frame_rows.n; i++) {
        uint32_t row = s->frame_rows.p[i], in = (uint32_t)ROW_GET(m->st, stack_profile_frame, mapping, row);
        add_to_list(s, &s->at_address,
                    address_key((strid)ROW_GET(m->st, stack_profile_mapping, name, in),
                                (strid)ROW_GET(m->st, stack_profile_mapping, build_id, in),
                                ROW_GET(m->st, stack_profile_frame, rel_pc, row)),
                    row);
    }
    vec_clear(&s->frame_rows);
}

void stack_profile_frames_at(struct machine_ctx *m, strid path, strid build_id, int64_t rel_pc,
                             void (*each)(void *ctx, uint32_t frame), void *ctx)
{
    enum { MAX_FRAMES = 4096 };
    const struct row_lists *frames = &m->profiling->at_address;
    index_frames(m);
    uint32_t at = list_head(frames, address_key(path, build_id, rel_pc));
    for (int i = 0; at && i < MAX_FRAMES; i++, at = frames->links.p[at - 1].next) {
        uint32_t frame = frames->links.p[at - 1].row;
        uint32_t mapping = (uint32_t)ROW_GET(m->st, stack_profile_frame, mapping, frame);
        if (ROW_GET(m->st, stack_profile_frame, rel_pc, frame) == rel_pc &&
            ROW_GET(m->st, stack_profile_mapping, name, mapping) == path &&
            ROW_GET(m->st, stack_profile_mapping, build_id, mapping) == build_id)
            each(ctx, frame);
    }
}

strid build_id_text(struct machine_ctx *m, struct slice raw)
{
    enum { BREAKPAD = 33, MAX = 256 };
    static const char digits[] = "0123456789abcdef";
    char text[2 * MAX];
    size_t n = 0;
    if (raw.len == BREAKPAD) /* a text already */
        return import_slice(m->im, raw);
    for (size_t i = 0; i < raw.len && i < MAX; i++) {
        text[n++] = digits[raw.p[i] >> 4];
        text[n++] = digits[raw.p[i] & 15];
    }
    return strpool_intern(&m->st->strings, text, n);
}
