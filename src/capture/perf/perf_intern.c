/* Numbers what samples refer to, and tells of it when it is first referred to. */
#include "capture/perf/perf_intern.h"

#include "base/alloc.h"
#include "wire/fields.h"

/* Keys as bytes: no padding in them. */
struct mapping_key {
    uint32_t build_id, path;
    uint64_t start, end, offset, load_bias;
};
struct frame_key {
    uint32_t function, mapping;
    uint64_t rel_pc, kind;
};
struct node_key {
    uint32_t above, frame;
};
_Static_assert(sizeof(struct mapping_key) == 40 && sizeof(struct frame_key) == 24, "keys are compared as bytes");

/* Byte `i` of a growing table of flags; NULL when out of memory. */
static uint8_t *flag_of(void *vec, uint32_t i)
{
    VEC(uint8_t) *v = vec;
    if (i >= v->n) {
        if (!vec_reserve(v, (size_t)i + 1))
            return NULL;
        memset(v->p + v->n, 0, v->cap - v->n);
        v->n = v->cap;
    }
    return &v->p[i];
}

/* True once: `what` is told from now on. Without memory it is never told, and the pool latches that. */
static bool begin_telling(void *vec, struct strpool *pool, uint32_t iid, uint8_t what)
{
    uint8_t *told = flag_of(vec, iid);
    bool first = told && !(*told & what);
    if (first)
        *told |= what;
    pool->failed |= !told;
    return first;
}

/* ---- what is told, under its number ---- */

static uint32_t list_field(enum perf_strings list)
{
    return list == PERF_STRINGS_BUILD_IDS ? INTERNED_DATA_BUILD_IDS
           : list == PERF_STRINGS_PATHS   ? INTERNED_DATA_MAPPING_PATHS
                                          : INTERNED_DATA_FUNCTION_NAMES;
}

static void tell_string(struct perf_intern *in, struct pb_writer *w, enum perf_strings list, uint32_t iid)
{
    if (!iid || !begin_telling(&in->told_strings, &in->strings, iid, (uint8_t)list))
        return; /* every sequence has number 0 from its start */
    struct slice text = strpool_view(&in->strings, iid);
    size_t m = pb_begin(w, list_field(list));
    pb_put_varint(w, INTERNED_STRING_IID, iid);
    pb_put_bytes(w, INTERNED_STRING_STR, text.p, text.len);
    pb_end(w, m);
}

/* The number of each part of a path, between its slashes. */
static void tell_path(struct perf_intern *in, struct pb_writer *w, struct pb_writer *parts, struct slice path)
{
    for (size_t at = 0; at < path.len;) {
        const uint8_t *slash = memchr(path.p + at, '/', path.len - at);
        size_t end = slash ? (size_t)(slash - path.p) : path.len;
        if (end > at) {
            uint32_t iid = strpool_intern(&in->strings, path.p + at, end - at);
            tell_string(in, w, PERF_STRINGS_PATHS, iid);
            pb_put_varint(parts, MAPPING_PATH_STRING_IDS, iid);
        }
        at = end + 1;
    }
}

static void tell_mapping(struct perf_intern *in, struct pb_writer *w, uint32_t iid)
{
    struct mapping_key key;
    struct pb_writer parts = {0};
    if (!iid || !begin_telling(&in->told_mappings, &in->mappings, iid, 1))
        return;
    memcpy(&key, strpool_view(&in->mappings, iid).p, sizeof key);
    if (key.path)
        tell_path(in, w, &parts, strpool_view(&in->strings, key.path));
    tell_string(in, w, PERF_STRINGS_BUILD_IDS, key.build_id);
    size_t message = pb_begin(w, INTERNED_DATA_MAPPINGS);
    pb_put_varint(w, MAPPING_IID, iid);
    pb_put_varint(w, MAPPING_BUILD_ID, key.build_id);
    pb_put_varint(w, MAPPING_EXACT_OFFSET, key.offset);
    pb_put_varint(w, MAPPING_START_OFFSET, 0);
    pb_put_varint(w, MAPPING_START, key.start);
    pb_put_varint(w, MAPPING_END, key.end);
    pb_put_varint(w, MAPPING_LOAD_BIAS, key.load_bias);
    pb_put_raw(w, parts.p, parts.n);
    pb_end(w, message);
    w->failed |= parts.failed;
    pb_writer_free(&parts);
}

static void tell_frame(struct perf_intern *in, struct pb_writer *w, uint32_t iid)
{
    struct frame_key key;
    if (!iid || !begin_telling(&in->told_frames, &in->frames, iid, 1))
        return;
    memcpy(&key, strpool_view(&in->frames, iid).p, sizeof key);
    tell_string(in, w, PERF_STRINGS_FUNCTIONS, key.function);
    tell_mapping(in, w, key.mapping);
    size_t message = pb_begin(w, INTERNED_DATA_FRAMES);
    pb_put_varint(w, FRAME_IID, iid);
    pb_put_varint(w, FRAME_FUNCTION_NAME_ID, key.function);
    pb_put_varint(w, FRAME_MAPPING_ID, key.mapping);
    pb_put_varint(w, FRAME_REL_PC, key.rel_pc);
    if (key.kind)
        pb_put_varint(w, FRAME_KIND, key.kind);
    pb_end(w, message);
}

/* Frames from a node of the tree outwards into in->path; false: out of memory. */
static bool walk_up(struct perf_intern *in, uint32_t node)
{
    vec_clear(&in->path);
    while (node) {
        struct node_key key;
        memcpy(&key, strpool_view(&in->nodes, node).p, sizeof key);
        if (!vec_push(&in->path, key.frame))
            return false;
        node = key.above;
    }
    return true;
}

void perf_intern_tell(struct perf_intern *in, struct pb_writer *w, uint64_t callstack)
{
    uint32_t node = callstack ? (uint32_t)(callstack - in->first_node) : 0;
    if (!begin_telling(&in->told_nodes, &in->nodes, node, 1))
        return;
    if (!walk_up(in, node)) {
        in->nodes.failed = true;
        return;
    }
    for (size_t i = 0; i < in->path.n; i++)
        tell_frame(in, w, in->path.p[i]);
    size_t message = pb_begin(w, INTERNED_DATA_CALLSTACKS);
    pb_put_varint(w, CALLSTACK_IID, callstack);
    for (size_t i = in->path.n; i-- > 0;)
        pb_put_varint(w, CALLSTACK_FRAME_IDS, in->path.p[i]);
    pb_end(w, message);
}

void perf_intern_tell_anew(struct perf_intern *in)
{
    vec_clear(&in->told_strings);
    vec_clear(&in->told_mappings);
    vec_clear(&in->told_frames);
    vec_clear(&in->told_nodes);
}

/* ---- numbers ---- */

static uint32_t number_of(struct perf_intern *in, struct slice text)
{
    return text.len ? strpool_intern(&in->strings, text.p, text.len) : 0;
}

uint32_t perf_intern_mapping(struct perf_intern *in, const struct perf_mapping *m)
{
    struct mapping_key key = {.build_id = number_of(in, m->build_id),
                              .path = number_of(in, m->path),
                              .start = m->start,
                              .end = m->end,
                              .offset = m->offset,
                              .load_bias = m->load_bias};
    return strpool_intern(&in->mappings, &key, sizeof key);
}

uint32_t perf_intern_frame(struct perf_intern *in, struct slice function, uint32_t mapping, uint64_t rel_pc,
                           uint32_t kind)
{
    struct frame_key key = {.function = number_of(in, function), .mapping = mapping, .rel_pc = rel_pc, .kind = kind};
    return strpool_intern(&in->frames, &key, sizeof key);
}

uint64_t perf_intern_callstack(struct perf_intern *in, const uint32_t *frames, size_t n)
{
    struct node_key key = {0};
    for (size_t i = n; i-- > 0;) {
        key.frame = frames[i];
        key.above = strpool_intern(&in->nodes, &key, sizeof key);
        if (!key.above)
            return 0;
    }
    return key.above ? in->first_node + key.above : 0;
}

bool perf_intern_failed(const struct perf_intern *in)
{
    return in->strings.failed || in->mappings.failed || in->frames.failed || in->nodes.failed;
}

bool perf_intern_is_large(const struct perf_intern *in)
{
    return in->strings.n + in->mappings.n + in->frames.n + in->nodes.n > PERF_INTERN_MAX;
}

void perf_intern_clear(struct perf_intern *in)
{
    uint64_t first = in->first_node + in->nodes.n;
    strpool_free(&in->strings);
    strpool_free(&in->mappings);
    strpool_free(&in->frames);
    strpool_free(&in->nodes);
    vec_free(&in->told_strings);
    vec_free(&in->told_mappings);
    vec_free(&in->told_frames);
    vec_free(&in->told_nodes);
    vec_free(&in->path);
    *in = (struct perf_intern){.first_node = first};
}
