/* Walks over the records, in the file and out of compressed ones. */
#include "importer/perf/perf_file.h"

#include "wire/inflate.h"

enum { HEADER = 8, MAX_RATIO = 1000, ROOM = 1 << 20 };

struct dat_cursor perf_body(const struct perf_file *f, const struct perf_record *r)
{
    return perf_cursor(f, slice_of(r->bytes.p + HEADER, r->bytes.len - HEADER));
}

/* Cuts a record off `rest`; false when no whole one is left. */
static bool cut(struct perf_file *f, struct slice *rest, struct perf_record *r)
{
    uint64_t size = 0;
    if (rest->len >= HEADER) {
        r->type = perf_load32(f, rest->p);
        r->misc = perf_load16(f, rest->p + 4);
        size = perf_load16(f, rest->p + 6);
    }
    if (rest->len >= HEADER + 8 && r->type == PERF_RECORD_COMPRESSED2) { /* its size may not fit into 16 bits */
        uint64_t data = perf_load64(f, rest->p + HEADER);
        size = data <= rest->len ? (HEADER + 8 + data + 7) & ~7ull : UINT64_MAX;
    }
    if (size < HEADER || size > rest->len) {
        f->truncated |= rest->len != 0;
        rest->len = 0;
        return false;
    }
    r->bytes = slice_of(rest->p, (size_t)size);
    *rest = slice_of(rest->p + size, rest->len - (size_t)size);
    return true;
}

/* Bytes that follow a record and are not in its size. */
static struct slice following(struct slice *rest, uint64_t size, bool *truncated)
{
    uint64_t padded = size <= rest->len ? (size + 7) & ~7ull : UINT64_MAX;
    *truncated |= padded > rest->len;
    struct slice s = slice_of(rest->p, (size_t)(size < rest->len ? size : rest->len));
    size_t skip = (size_t)(padded < rest->len ? padded : rest->len);
    *rest = slice_of(rest->p + skip, rest->len - skip);
    return s;
}

static int inflate(struct perf_file *f, struct slice in)
{
    f->packed += in.len;
    if (!f->inflater && !(f->inflater = inflater_open(INFLATE_ZSTD)))
        return -MRD_ENOMEM;
    size_t written;
    do {
        if (!vec_reserve(&f->plain, f->plain.n + ROOM))
            return -MRD_ENOMEM;
        size_t room = f->plain.cap - f->plain.n;
        int rc = inflater_run(f->inflater, &in, f->plain.p + f->plain.n, room, &written, NULL);
        f->plain.n += written;
        if (rc == -MRD_ENOMEM)
            return rc;
        if (rc || f->plain.n / MAX_RATIO > f->packed) {
            f->truncated = true;
            return 0;
        }
        if (written < room)
            return 0;
    } while (true);
}

/* Whether a record is taken in, and not yielded. */
static bool describes(uint32_t type)
{
    static const uint8_t types[] = {PERF_RECORD_HEADER_ATTR,         PERF_RECORD_EVENT_UPDATE,
                                    PERF_RECORD_HEADER_TRACING_DATA, PERF_RECORD_HEADER_FEATURE,
                                    PERF_RECORD_HEADER_BUILD_ID,     PERF_RECORD_COMPRESSED,
                                    PERF_RECORD_COMPRESSED2};
    return memchr(types, (int)type, sizeof types) && type <= UINT8_MAX;
}

/* Records that describe the recording, and compressed ones. Returns 1 when `r` is none of them. */
static int take_in(struct perf_file *f, struct slice *rest, const struct perf_record *r)
{
    struct dat_cursor c = perf_body(f, r), peek = c;
    bool follows = r->type == PERF_RECORD_HEADER_TRACING_DATA || r->type == PERF_RECORD_AUXTRACE;
    if (f->again && !follows)
        return !describes(r->type);
    switch (r->type) {
    case PERF_RECORD_HEADER_ATTR: {
        if (!f->stream) /* the events of a file stand in its header */
            return 0;
        (void)dat_u32(&peek);
        uint32_t size = dat_u32(&peek);
        struct slice attr = dat_bytes(&c, size), ids = slice_of(c.p, (size_t)(c.end - c.p));
        int rc = perf_add_attr(f, attr, ids);
        f->truncated |= rc == -MRD_EFORMAT;
        return rc == -MRD_ENOMEM ? rc : 0;
    }
    case PERF_RECORD_EVENT_UPDATE: {
        enum { NAME = 2 };
        uint64_t kind = dat_u64(&c), id = dat_u64(&c), *attr = u64map_get(&f->ids, id);
        if (kind == NAME && attr && !c.bad)
            f->attrs.p[*attr].name = slice_of(c.p, strnlen((const char *)c.p, (size_t)(c.end - c.p)));
        return 0;
    }
    case PERF_RECORD_HEADER_TRACING_DATA:
        f->tracing_data = following(rest, dat_u32(&c), &f->truncated);
        return 0;
    case PERF_RECORD_AUXTRACE:
        (void)following(rest, dat_u64(&c), &f->truncated);
        return 1;
    case PERF_RECORD_HEADER_FEATURE: {
        uint64_t bit = dat_u64(&c);
        return c.bad || bit >= 256 ? 0 : perf_read_feature(f, (unsigned)bit, slice_of(c.p, (size_t)(c.end - c.p)));
    }
    case PERF_RECORD_HEADER_BUILD_ID:
        return perf_read_feature(f, PERF_FEATURE_BUILD_ID, r->bytes);
    case PERF_RECORD_COMPRESSED:
        return f->in_plain ? 0 : inflate(f, slice_of(c.p, (size_t)(c.end - c.p)));
    case PERF_RECORD_COMPRESSED2: {
        struct slice data = dat_bytes(&c, dat_u64(&c));
        return f->in_plain ? 0 : inflate(f, data);
    }
    default:
        return 1;
    }
}

/* What is read when `rest` is at its end: first the parts as they stand, each with compressed records of its own, then
 * what came out of those. 0: nothing; 1: there is something; -MRD_ENOMEM. */
static int next_rest(struct perf_file *f)
{
    if (!f->in_plain) {
        if (!f->again && !vec_push(&f->plain_ends, f->plain.n))
            return -MRD_ENOMEM;
        inflater_close(f->inflater);
        f->inflater = NULL;
        if (f->part < f->n_parts) {
            f->rest = f->parts[f->part++];
            return 1;
        }
        f->in_plain = true;
        f->part = 0;
    }
    if (f->part == f->plain_ends.n)
        return 0;
    size_t start = f->part ? f->plain_ends.p[f->part - 1] : 0, end = f->plain_ends.p[f->part++];
    f->rest = end > start ? slice_of(f->plain.p + start, end - start) : slice_of(NULL, 0);
    return 1;
}

void perf_records_rewind(struct perf_file *f)
{
    f->again = true;
    f->in_plain = false;
    f->part = 0;
    f->rest = f->data;
}

int perf_records_other(struct perf_file *f, struct perf_record *r)
{
    for (;;) {
        while (!cut(f, &f->rest, r)) {
            int more = next_rest(f);
            if (more != 1)
                return more;
        }
        int rc = r->type == PERF_RECORD_SAMPLE ? 1 : take_in(f, &f->rest, r);
        if (rc)
            return rc;
    }
}
