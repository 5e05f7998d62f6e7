/* Numbers what samples refer to, and writes it when it is new. */
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
    uint64_t rel_pc;
};
struct node_key {
    uint32_t above, frame;
};
_Static_assert(sizeof(struct mapping_key) == 40 && sizeof(struct frame_key) == 16, "keys are compared as bytes");

/* Byte `i` of a growing table of flags; NULL when out of memory. */
static uint8_t *flag_of(void *vec, uint32_t i)
{
    VEC(uint8_t) *v = vec;
    if (i >= v->n) {
        size_t n = (size_t)i + 1;
        if (!vec_reserve(v, n))
            return NULL;
        memset(v->p + v->n, 0, v->cap - v->n);
        v->n = n;
    }
    return &v->p[i];
}

static uint32_t list_field(enum perf_strings list)
{
    return list == PERF_STRINGS_BUILD_IDS ? INTERNED_DATA_BUILD_IDS
           : list == PERF_STRINGS_PATHS   ? INTERNED_DATA_MAPPING_PATHS
                                          : INTERNED_DATA_FUNCTION_NAMES;
}

uint32_t perf_intern_string(struct perf_intern *in, struct pb_writer *w, enum perf_strings list, struct slice text)
{
    if (!text.len)
        return 0; /* which every sequence has from its start */
    uint32_t iid = strpool_intern(&in->strings, text.p, text.len);
    uint8_t *written = iid ? flag_of(&in->written, iid) : NULL;
    if (!written) {
        in->strings.failed = true;
        return 0;
    }
    if (!(*written & list)) {
        *written |= (uint8_t)list;
        size_t m = pb_begin(w, list_field(list));
        pb_put_varint(w, INTERNED_STRING_IID, iid);
        pb_put_bytes(w, INTERNED_STRING_STR, text.p, text.len);
        pb_end(w, m);
    }
    return iid;
}

/* The number of each part of a path, between its slashes. */
static void put_path(struct perf_intern *in, struct pb_writer *w, struct pb_writer *parts, struct slice path)
{
    for (size_t at = 0; at < path.len;) {
        const uint8_t *slash = memchr(path.p + at, '/', path.len - at);
        size_t end = slash ? (size_t)(slash - path.p) : path.len;
        if (end > at)
            pb_put_varint(parts, MAPPING_PATH_STRING_IDS,
                          perf_intern_string(in, w, PERF_STRINGS_PATHS, slice_of(path.p + at, end - at)));
        at = end + 1;
    }
}

uint32_t perf_intern_mapping(struct perf_intern *in, struct pb_writer *w, const struct perf_mapping *m)
{
    struct mapping_key key = {.path = m->path.len ? strpool_intern(&in->strings, m->path.p, m->path.len) : 0,
                              .start = m->start,
                              .end = m->end,
                              .offset = m->offset,
                              .load_bias = m->load_bias};
    key.build_id = m->build_id.len ? strpool_intern(&in->strings, m->build_id.p, m->build_id.len) : 0;
    uint32_t before = in->mappings.n, iid = strpool_intern(&in->mappings, &key, sizeof key);
    if (!iid || in->mappings.n == before)
        return iid;
    struct pb_writer parts = {0};
    put_path(in, w, &parts, m->path);
    uint32_t build_id = perf_intern_string(in, w, PERF_STRINGS_BUILD_IDS, m->build_id);
    size_t message = pb_begin(w, INTERNED_DATA_MAPPINGS);
    pb_put_varint(w, MAPPING_IID, iid);
    pb_put_varint(w, MAPPING_BUILD_ID, build_id);
    pb_put_varint(w, MAPPING_EXACT_OFFSET, m->offset);
    pb_put_varint(w, MAPPING_START_OFFSET, 0);
    pb_put_varint(w, MAPPING_START, m->start);
    pb_put_varint(w, MAPPING_END, m->end);
    pb_put_varint(w, MAPPING_LOAD_BIAS, m->load_bias);
    pb_put_raw(w, parts.p, parts.n);
    pb_end(w, message);
    w->failed |= parts.failed;
    pb_writer_free(&parts);
    return iid;
}

uint32_t perf_intern_frame(struct perf_intern *in, struct pb_writer *w, struct slice function, uint32_t mapping,
                           uint64_t rel_pc, uint32_t kind)
{
    struct frame_key key = {.mapping = mapping, .rel_pc = rel_pc};
    key.function = perf_intern_string(in, w, PERF_STRINGS_FUNCTIONS, function);
    uint32_t before = in->frames.n, iid = strpool_intern(&in->frames, &key, sizeof key);
    if (!iid || in->frames.n == before)
        return iid;
    size_t message = pb_begin(w, INTERNED_DATA_FRAMES);
    pb_put_varint(w, FRAME_IID, iid);
    pb_put_varint(w, FRAME_FUNCTION_NAME_ID, key.function);
    pb_put_varint(w, FRAME_MAPPING_ID, mapping);
    pb_put_varint(w, FRAME_REL_PC, rel_pc);
    if (kind)
        pb_put_varint(w, FRAME_KIND, kind);
    pb_end(w, message);
    return iid;
}

uint64_t perf_intern_callstack(struct perf_intern *in, struct pb_writer *w, const uint32_t *frames, size_t n)
{
    struct node_key key = {0};
    uint64_t iid = 0;
    for (size_t i = n; i-- > 0;) {
        key.frame = frames[i];
        key.above = strpool_intern(&in->nodes, &key, sizeof key);
        if (!key.above)
            return 0;
    }
    uint8_t *written = flag_of(&in->stacks, key.above);
    if (!written) {
        in->nodes.failed = true;
        return 0;
    }
    if (key.above)
        iid = in->first_node + key.above;
    if (*written)
        return iid;
    *written = 1;
    size_t message = pb_begin(w, INTERNED_DATA_CALLSTACKS);
    pb_put_varint(w, CALLSTACK_IID, iid);
    for (size_t i = n; i-- > 0;)
        pb_put_varint(w, CALLSTACK_FRAME_IDS, frames[i]);
    pb_end(w, message);
    return iid;
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
    vec_free(&in->written);
    vec_free(&in->stacks);
    *in = (struct perf_intern){.first_node = first};
}
