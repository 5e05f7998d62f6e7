/* The head of a perf.data, and the attrs. */
#include "importer/perf/perf_file.h"

#include "wire/inflate.h"

enum {
    HEADER_BYTES = 104,
    STREAM_HEADER_BYTES = 16,
    MAX_ATTRS = 65536,
    ATTR_LEAST = 64,
    SECTION_BYTES = 16,
};

/* A part of the file; what is not there is cut off. */
static struct slice section(struct perf_file *f, uint64_t offset, uint64_t size)
{
    if (offset > f->bytes.len || size > f->bytes.len - offset)
        f->truncated = true;
    if (offset >= f->bytes.len)
        return slice_of(NULL, 0);
    uint64_t left = f->bytes.len - offset;
    return slice_of(f->bytes.p + offset, (size_t)(size < left ? size : left));
}

/* Flags are declared as bit fields: on machines of the other order the first one is on top. */
static uint64_t reversed(uint64_t v)
{
    uint64_t out = 0;
    for (int i = 0; i < 64; i++)
        out |= (v >> i & 1) << (63 - i);
    return out;
}

int perf_add_attr(struct perf_file *f, struct slice bytes, struct slice ids)
{
    if (f->attrs.n == MAX_ATTRS)
        return 0;
    struct dat_cursor c = perf_cursor(f, bytes);
    struct perf_attr a = {.type = dat_u32(&c)};
    (void)dat_u32(&c); /* its size, as the recorder's kernel has it */
    a.config = dat_u64(&c);
    a.period = dat_u64(&c);
    a.sample_type = dat_u64(&c);
    a.read_format = dat_u64(&c);
    a.flags = dat_u64(&c);
    if (f->big)
        a.flags = reversed(a.flags);
    if (c.bad)
        return -MRD_EFORMAT;
    enum { BRANCH_TYPE_OFFSET = 72, SO_FAR = 48 };
    (void)dat_bytes(&c, BRANCH_TYPE_OFFSET - SO_FAR); /* from here on 0 where the attr is older */
    a.branch_type = dat_u64(&c);
    a.regs_user = dat_u64(&c);
    (void)dat_u32(&c); /* how much of the stack was asked for */
    a.clockid = (int32_t)dat_u32(&c);
    a.regs_intr = dat_u64(&c);
    a.has_ids = ids.len >= 8;
    perf_layout_of(&a);
    if (!vec_push(&f->attrs, a))
        return -MRD_ENOMEM;
    memset(f->known_ids, 0, sizeof f->known_ids); /* attrs have moved */
    struct dat_cursor i = perf_cursor(f, ids);
    while (i.end - i.p >= 8)
        if (!u64map_set(&f->ids, dat_u64(&i), f->attrs.n - 1))
            return -MRD_ENOMEM;
    return 0;
}

/* Ids lie in the file once: entries that lead to the same ones again and again end. */
static int read_attrs(struct perf_file *f, struct slice attrs, uint64_t attr_size, struct error *err)
{
    size_t left = f->bytes.len;
    if (attr_size < ATTR_LEAST + SECTION_BYTES || attr_size > UINT16_MAX)
        return error_set(err, -MRD_EFORMAT, "perf.data: event descriptions of %llu bytes are not supported",
                         (unsigned long long)attr_size);
    for (; attrs.len >= attr_size; attrs = slice_of(attrs.p + attr_size, attrs.len - attr_size)) {
        struct dat_cursor c = perf_cursor(f, slice_of(attrs.p + attr_size - SECTION_BYTES, SECTION_BYTES));
        uint64_t offset = dat_u64(&c), size = dat_u64(&c);
        struct slice ids = section(f, offset, size);
        f->truncated |= ids.len > left;
        ids.len = ids.len < left ? ids.len : left;
        left -= ids.len;
        int rc = perf_add_attr(f, slice_of(attrs.p, attr_size - SECTION_BYTES), ids);
        if (rc)
            return error_set(err, rc, "perf.data: cannot read an event description");
    }
    return 0;
}

static int read_features(struct perf_file *f, uint64_t at, const uint64_t bits[4])
{
    struct dat_cursor c = perf_cursor(f, section(f, at, f->bytes.len - (at < f->bytes.len ? at : f->bytes.len)));
    for (unsigned bit = 0; bit < 256; bit++) {
        if (!(bits[bit / 64] >> (bit % 64) & 1))
            continue;
        uint64_t offset = dat_u64(&c), size = dat_u64(&c);
        if (c.bad) {
            f->truncated = true;
            return 0;
        }
        int rc = perf_read_feature(f, bit, section(f, offset, size));
        if (rc)
            return rc;
    }
    return 0;
}

/* Whether the features stand at `at`: each where the file has them, behind those before. A recorder that died never
 * wrote how much it recorded, and records stand there; one that recorded nothing wrote none. */
static bool features_follow(struct perf_file *f, uint64_t at, const uint64_t bits[4])
{
    unsigned n = 0;
    for (int i = 0; i < 4; i++)
        n += (unsigned)__builtin_popcountll(bits[i]);
    if (!n || at > f->bytes.len || f->bytes.len - at < n * SECTION_BYTES)
        return false;
    uint64_t end = at + n * SECTION_BYTES;
    struct dat_cursor c = perf_cursor(f, slice_of(f->bytes.p + at, n * SECTION_BYTES));
    for (; n; n--) {
        uint64_t offset = dat_u64(&c), size = dat_u64(&c);
        if (offset < end || offset > f->bytes.len || size > f->bytes.len - offset)
            return false;
        end = offset + size;
    }
    return true;
}

static int read_header(struct perf_file *f, struct dat_cursor *c, struct error *err)
{
    uint64_t bits[4];
    uint64_t attr_size = dat_u64(c);
    uint64_t attrs_at = dat_u64(c), attrs_size = dat_u64(c), data_at = dat_u64(c), data_size = dat_u64(c);
    (void)dat_bytes(c, SECTION_BYTES); /* types of events, of old */
    for (int i = 0; i < 4; i++)
        bits[i] = dat_u64(c);
    if (c->bad)
        return error_set(err, -MRD_EFORMAT, "perf.data ends in its header");
    int rc = read_attrs(f, section(f, attrs_at, attrs_size), attr_size, err);
    if (rc)
        return rc;
    bool died = data_size == 0 && data_at < f->bytes.len && !features_follow(f, data_at, bits);
    f->truncated |= died;
    f->data = section(f, data_at, died ? f->bytes.len - data_at : data_size);
    if (!died && read_features(f, data_at + data_size, bits))
        return error_set(err, -MRD_ENOMEM, "out of memory for perf.data");
    return 0;
}

int perf_file_open(struct perf_file *f, struct slice bytes, struct error *err)
{
    *f = (struct perf_file){.bytes = bytes};
    f->big = bytes.len && bytes.p[0] == '2';
    struct dat_cursor c = perf_cursor(f, bytes);
    struct slice magic = dat_bytes(&c, 8);
    uint64_t size = dat_u64(&c);
    if (slice_eq_str(magic, "PERFFILE"))
        return error_set(err, -MRD_EFORMAT, "perf.data of version 1, which perf wrote until 2010, is not supported");
    if (c.bad || (!slice_eq_str(magic, "PERFILE2") && !slice_eq_str(magic, "2ELIFREP")))
        return error_set(err, -MRD_EFORMAT, "not a perf.data file of version 2");
    int rc = 0;
    if (size == STREAM_HEADER_BYTES) {
        f->stream = true;
        f->data = slice_of(c.p, (size_t)(c.end - c.p));
    } else if (size == HEADER_BYTES) {
        rc = read_header(f, &c, err);
    } else {
        rc = error_set(err, -MRD_EFORMAT, "perf.data: header of %llu bytes; 104 or 16 are expected",
                       (unsigned long long)size);
    }
    f->rest = f->data;
    return rc;
}

void perf_file_close(struct perf_file *f)
{
    vec_free(&f->attrs);
    u64map_free(&f->ids);
    vec_free(&f->build_ids);
    u64map_free(&f->build_id_of);
    vec_free(&f->plain);
    vec_free(&f->plain_ends);
    inflater_close(f->inflater);
}
