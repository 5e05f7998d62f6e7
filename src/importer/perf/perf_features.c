/* What the features of a perf.data say. */
#include "importer/perf/perf_file.h"

#include "base/hash.h"

/* A text with its length in front, padded with NULs. */
struct slice perf_text(struct dat_cursor *c)
{
    struct slice s = dat_bytes(c, dat_u32(c));
    const uint8_t *nul = s.len ? memchr(s.p, 0, s.len) : NULL;
    return nul ? slice_of(s.p, (size_t)(nul - s.p)) : s;
}

static uint64_t build_id_key(uint32_t pid, struct slice name)
{
    return hash_combine(hash_bytes(name.p, name.len), pid);
}

static struct slice build_id_of(const struct perf_file *f, uint32_t pid, struct slice name)
{
    const uint64_t *at = u64map_get(&f->build_id_of, build_id_key(pid, name));
    const struct perf_build_id *b = at ? &f->build_ids.p[*at] : NULL;
    return b && (uint32_t)b->pid == pid && slice_eq(b->name, name) ? b->id : slice_of(NULL, 0);
}

struct slice perf_find_build_id(const struct perf_file *f, uint32_t pid, struct slice name)
{
    enum { ANY = -1 };
    struct slice own = build_id_of(f, pid, name);
    return own.len ? own : build_id_of(f, (uint32_t)ANY, name);
}

/* Entries {record header, pid, 20 bytes of id, its length, name}. */
static int read_build_ids(struct perf_file *f, struct slice bytes)
{
    enum { FIXED = 8 + 4 + 24, ID_BYTES = 20, HAS_SIZE = 1 << 15 };
    while (bytes.len >= FIXED) {
        struct dat_cursor c = perf_cursor(f, bytes);
        (void)dat_u32(&c);
        unsigned misc = dat_u16(&c), size = dat_u16(&c);
        if (size < FIXED || size > bytes.len)
            return 0;
        struct perf_build_id b = {.pid = (int32_t)dat_u32(&c)};
        b.id = dat_bytes(&c, ID_BYTES);
        unsigned id_size = *c.p;
        if ((misc & HAS_SIZE) && id_size <= ID_BYTES)
            b.id.len = id_size;
        b.name = slice_of(bytes.p + FIXED, strnlen((const char *)bytes.p + FIXED, size - FIXED));
        bool added;
        uint64_t *at = b.id.len ? u64map_put(&f->build_id_of, build_id_key((uint32_t)b.pid, b.name), &added) : NULL;
        if (b.id.len && (!at || !vec_push(&f->build_ids, b)))
            return -MRD_ENOMEM;
        if (at && added)
            *at = f->build_ids.n - 1;
        bytes = slice_of(bytes.p + size, bytes.len - size);
    }
    return 0;
}

/* n, size of an attr, then for each event its attr, number of ids, name, ids. Names go to attrs by their place, which
 * is that of the attrs in the header. */
static void read_event_desc(struct perf_file *f, struct slice bytes)
{
    struct dat_cursor c = perf_cursor(f, bytes);
    uint32_t n = dat_u32(&c), attr_size = dat_u32(&c);
    for (uint32_t i = 0; i < n && i < f->attrs.n && !c.bad; i++) {
        (void)dat_bytes(&c, attr_size);
        uint32_t n_ids = dat_u32(&c);
        struct slice name = perf_text(&c);
        (void)dat_bytes(&c, 8ull * n_ids);
        if (!c.bad)
            f->attrs.p[i].name = name;
    }
}

int perf_read_feature(struct perf_file *f, unsigned bit, struct slice bytes)
{
    if (bit >= 256)
        return 0;
    f->features[bit] = bytes;
    f->has_feature[bit] = true;
    if (bit == PERF_FEATURE_TRACING_DATA)
        f->tracing_data = bytes;
    else if (bit == PERF_FEATURE_EVENT_DESC)
        read_event_desc(f, bytes);
    else if (bit == PERF_FEATURE_BUILD_ID)
        return read_build_ids(f, bytes);
    return 0;
}

struct slice perf_feature_text(const struct perf_file *f, enum perf_feature feature)
{
    struct dat_cursor c = perf_cursor(f, f->features[feature]);
    struct slice s = perf_text(&c);
    return c.bad ? slice_of(NULL, 0) : s;
}
