/* The head of a trace.dat file, and the parts of version 6. */
#include "importer/trace_dat/dat_file.h"

#include <stdlib.h>

enum {
    OPTION_DONE = 0,
    OPTION_DATE = 1,
    OPTION_CPUSTAT = 2,
    OPTION_BUFFER = 3,
    OPTION_TRACECLOCK = 4,
    OPTION_UNAME = 5,
    OPTION_HOOK = 6,
    OPTION_OFFSET = 7,
    OPTION_CPUCOUNT = 8,
    OPTION_VERSION = 9,
    OPTION_PROCMAPS = 10,
    OPTION_TRACEID = 11,
    OPTION_TIME_SHIFT = 12,
    OPTION_GUEST = 13,
    OPTION_TSC2NSEC = 14,
    OPTION_LAST_BOOT_INFO = 24,
    KIND_BYTES = 10, /* "options  \0", "flyrecord\0" */
};

static bool is_kind(struct slice s, const char *kind)
{
    return s.len == KIND_BYTES && memcmp(s.p, kind, KIND_BYTES) == 0;
}

struct dat_buffer *dat_add_buffer(struct dat_file *f, struct slice name)
{
    if (f->buffers.n == DAT_MAX_BUFFERS)
        return NULL;
    struct dat_buffer *b = vec_add(&f->buffers);
    if (b)
        *b = (struct dat_buffer){.name = name, .page_size = f->page_size};
    return b;
}

int dat_read_head_info(struct dat_file *f, struct dat_cursor *c)
{
    struct slice name = dat_text(c);
    if (!slice_eq_str(name, "header_page"))
        c->bad = true;
    f->header_page = dat_bytes(c, dat_u64(c));
    name = dat_text(c);
    if (!slice_eq_str(name, "header_event"))
        c->bad = true;
    f->header_event = dat_bytes(c, dat_u64(c));
    return 0;
}

static int add_format(struct dat_file *f, struct slice group, struct slice text)
{
    return vec_push(&f->formats, (struct dat_format){group, text}) ? 0 : -MRD_ENOMEM;
}

/* One that is cut off would put fields in wrong places: it is not taken. */
static int read_format(struct dat_file *f, struct slice group, struct dat_cursor *c)
{
    struct slice text = dat_bytes(c, dat_u64(c));
    return c->bad ? 0 : add_format(f, group, text);
}

int dat_read_ftrace_formats(struct dat_file *f, struct dat_cursor *c)
{
    int rc = 0;
    for (uint32_t n = dat_u32(c); n && !c->bad && !rc; n--)
        rc = read_format(f, slice_str("ftrace"), c);
    return rc;
}

int dat_read_event_formats(struct dat_file *f, struct dat_cursor *c)
{
    int rc = 0;
    for (uint32_t systems = dat_u32(c); systems && !c->bad && !rc; systems--) {
        struct slice group = dat_text(c);
        for (uint32_t n = dat_u32(c); n && !c->bad && !rc; n--)
            rc = read_format(f, group, c);
    }
    return rc;
}

/* A number in text: decimal or, behind 0x, hexadecimal. */
static int64_t number_of(struct slice s)
{
    char text[32];
    size_t n = s.len < sizeof text - 1 ? s.len : sizeof text - 1;
    memcpy(text, s.p ? s.p : (const uint8_t *)"", n);
    text[n] = 0;
    return text[0] == '-' ? strtoll(text, NULL, 0) : (int64_t)strtoull(text, NULL, 0);
}

static struct slice without_nul(struct slice s)
{
    const uint8_t *nul = s.len ? memchr(s.p, 0, s.len) : NULL;
    return nul ? slice_of(s.p, (size_t)(nul - s.p)) : s;
}

/* Statistics; a title comes before those of an instance. */
static int read_cpustat(struct dat_file *f, struct slice text)
{
    static const char title[] = "\nBuffer: ";
    struct slice buffer = f->cpustats.n ? vec_last(&f->cpustats)->buffer : slice_of(NULL, 0);
    text = without_nul(text);
    if (slice_starts(text, title)) {
        buffer = slice_of(text.p + sizeof title - 1, text.len - (sizeof title - 1));
        const uint8_t *end = memchr(buffer.p, '\n', buffer.len);
        buffer.len = end ? (size_t)(end - buffer.p) : buffer.len;
        text.len = 0;
    }
    return vec_push(&f->cpustats, (struct dat_cpustat){buffer, text}) ? 0 : -MRD_ENOMEM;
}

int dat_read_option(struct dat_file *f, unsigned id, struct slice data)
{
    struct dat_cursor c = {data.p, data.p + data.len, f->big, false};
    int64_t v;
    switch (id) {
    case OPTION_DATE: /* microseconds */
        v = number_of(data);
        f->has_date = !__builtin_mul_overflow(v, 1000, &f->date_ns);
        return 0;
    case OPTION_CPUSTAT:
        return read_cpustat(f, data);
    case OPTION_TRACECLOCK:
        f->clocks = without_nul(data);
        return 0;
    case OPTION_UNAME:
        f->uname = without_nul(data);
        return 0;
    case OPTION_HOOK:
        return vec_push(&f->hooks, without_nul(data)) ? 0 : -MRD_ENOMEM;
    case OPTION_OFFSET:
        f->offset_ns = number_of(data);
        return 0;
    case OPTION_CPUCOUNT: {
        uint32_t n = dat_u32(&c);
        if (!c.bad && n > f->n_cpus && n <= DAT_MAX_CPUS)
            f->n_cpus = n;
        return 0;
    }
    case OPTION_VERSION:
        f->writer = without_nul(data);
        return 0;
    case OPTION_PROCMAPS:
        return vec_push(&f->procmaps, without_nul(data)) ? 0 : -MRD_ENOMEM;
    case OPTION_LAST_BOOT_INFO:
        return vec_push(&f->last_boots, without_nul(data)) ? 0 : -MRD_ENOMEM;
    case OPTION_TRACEID:
        f->trace_id = dat_u64(&c);
        f->has_trace_id = !c.bad;
        return 0;
    case OPTION_TIME_SHIFT:
        f->time_shift = data;
        return 0;
    case OPTION_GUEST:
        return vec_push(&f->guests, data) ? 0 : -MRD_ENOMEM;
    case OPTION_TSC2NSEC:
        f->tsc_mult = dat_u32(&c);
        f->tsc_shift = dat_u32(&c);
        f->has_tsc = !c.bad && f->tsc_shift < 64;
        return 0;
    default:
        return 0;
    }
}

/* The table behind "flyrecord": an offset and a size for each CPU. */
static int read_cpu_table(struct dat_file *f, struct dat_buffer *b, struct dat_cursor *c)
{
    for (uint32_t cpu = 0; cpu < f->n_cpus && !c->bad; cpu++) {
        struct dat_cpu row = {.cpu = cpu};
        row.offset = dat_u64(c);
        row.size = dat_u64(c);
        if (!c->bad && !vec_push(&b->cpus, row))
            return -MRD_ENOMEM;
    }
    return 0;
}

/* Where a recorder died, nothing says whose the data behind the table are. */
static bool is_unfinished(const struct dat_file *f, const struct dat_buffer *b, const struct dat_cursor *c)
{
    uint64_t all = 0;
    for (size_t i = 0; i < b->cpus.n; i++)
        all |= b->cpus.p[i].offset | b->cpus.p[i].size;
    return !all && (uint64_t)(c->end - c->p) > f->page_size;
}

/* An option BUFFER of version 6: where the table of an instance stands. */
static int read_instance(struct dat_file *f, struct slice option)
{
    struct dat_cursor c = {option.p, option.p + option.len, f->big, false};
    uint64_t offset = dat_u64(&c);
    struct dat_buffer *b = dat_add_buffer(f, without_nul(slice_of(c.p, (size_t)(c.end - c.p))));
    if (!b)
        return f->buffers.n == DAT_MAX_BUFFERS ? 0 : -MRD_ENOMEM;
    if (c.bad || offset > f->bytes.len) {
        f->truncated = true;
        return 0;
    }
    struct dat_cursor t = {f->bytes.p + offset, f->bytes.p + f->bytes.len, f->big, false};
    if (!is_kind(dat_bytes(&t, KIND_BYTES), "flyrecord")) {
        f->bad_sections++;
        return 0;
    }
    int rc = read_cpu_table(f, b, &t);
    f->truncated |= t.bad;
    return rc;
}

typedef VEC(struct slice) slice_list;

/* The options of version 6; those that are about instances wait until the number of CPUs is known. */
static int read_options6(struct dat_file *f, struct dat_cursor *c, slice_list *instances)
{
    for (;;) {
        unsigned id = dat_u16(c);
        if (c->bad || id == OPTION_DONE)
            return 0;
        struct slice data = dat_bytes(c, dat_u32(c));
        if (c->bad)
            return 0;
        int rc = id == OPTION_BUFFER ? (vec_push(instances, data) ? 0 : -MRD_ENOMEM) : dat_read_option(f, id, data);
        if (rc)
            return rc;
    }
}

/* What describes events: the same in version 6 and in what perf keeps of it. */
static int read_descriptions(struct dat_file *f, struct dat_cursor *c)
{
    int rc = dat_read_head_info(f, c);
    if (!rc)
        rc = dat_read_ftrace_formats(f, c);
    if (!rc)
        rc = dat_read_event_formats(f, c);
    f->kallsyms = dat_bytes(c, dat_u32(c));
    f->printk = dat_bytes(c, dat_u32(c));
    f->cmdlines = dat_bytes(c, dat_u64(c));
    return rc;
}

static int read_version6(struct dat_file *f, struct dat_cursor *c)
{
    slice_list instances = {0};
    int rc = read_descriptions(f, c);
    f->n_cpus = dat_u32(c);
    if (f->n_cpus > DAT_MAX_CPUS)
        c->bad = true;
    struct slice kind = dat_bytes(c, KIND_BYTES);
    if (!rc && !c->bad && is_kind(kind, "options  ")) {
        rc = read_options6(f, c, &instances);
        kind = dat_bytes(c, KIND_BYTES);
    }
    if (!rc && !c->bad && is_kind(kind, "flyrecord")) {
        struct dat_buffer *top = dat_add_buffer(f, slice_of(NULL, 0));
        rc = top ? read_cpu_table(f, top, c) : -MRD_ENOMEM;
        f->truncated |= !rc && !instances.n && is_unfinished(f, top, c);
    } else if (!rc && !c->bad && is_kind(kind, "latency  ")) {
        f->latency_text = true;
    } else if (!c->bad) {
        f->bad_sections++;
    }
    f->truncated |= c->bad;
    for (size_t i = 0; i < instances.n && !rc; i++)
        rc = read_instance(f, instances.p[i]);
    vec_free(&instances);
    return rc;
}

/* Version 7 goes on with the compression and the place of the first options. */
static int read_version7(struct dat_file *f, struct dat_cursor *c, struct error *err)
{
    struct slice name = dat_text(c);
    (void)dat_text(c); /* the library's version */
    uint64_t options = dat_u64(c);
    if (slice_eq_str(name, "zlib"))
        f->compression = DAT_ZLIB;
    else if (slice_eq_str(name, "zstd"))
        f->compression = DAT_ZSTD;
    else if (!slice_eq_str(name, "none") && !c->bad)
        return error_set(err, -MRD_EUNSUPPORTED, "trace.dat compressed with '%.*s'; zlib and zstd can be read",
                         (int)(name.len < 32 ? name.len : 32), (const char *)name.p);
    f->truncated |= c->bad;
    return c->bad ? 0 : dat_read_sections(f, options);
}

static const char magic[] = "\x17\x08\x44tracing";

static bool has_magic(struct slice bytes)
{
    return bytes.len >= sizeof magic - 1 && memcmp(bytes.p, magic, sizeof magic - 1) == 0;
}

int dat_file_open_descriptions(struct dat_file *f, struct slice bytes)
{
    *f = (struct dat_file){.bytes = bytes};
    if (!has_magic(bytes))
        return -MRD_EFORMAT;
    struct dat_cursor c = {bytes.p + sizeof magic - 1, bytes.p + bytes.len, false, false};
    (void)dat_text(&c); /* version */
    struct slice order = dat_bytes(&c, 2);
    c.big = f->big = order.len == 2 && order.p[0] != 0;
    f->page_size = dat_u32(&c);
    int rc = c.bad ? -MRD_EFORMAT : read_descriptions(f, &c);
    f->truncated = c.bad;
    return rc;
}

int dat_file_open(struct dat_file *f, struct slice bytes, struct error *err)
{
    *f = (struct dat_file){.bytes = bytes};
    if (!has_magic(bytes))
        return error_set(err, -MRD_EFORMAT, "not a trace.dat file");
    struct dat_cursor c = {bytes.p + sizeof magic - 1, bytes.p + bytes.len, false, false};
    struct slice version = dat_text(&c);
    if (c.bad || (!slice_eq_str(version, "6") && !slice_eq_str(version, "7")))
        return error_set(err, -MRD_EUNSUPPORTED, "trace.dat version '%.*s'; versions 6 and 7 can be read",
                         (int)(version.len < 16 ? version.len : 16), (const char *)version.p);
    f->version = version.p[0] == '7' ? 7 : 6;
    struct slice order = dat_bytes(&c, 2); /* byte order, size of a long of the recording program */
    f->big = order.len == 2 && order.p[0] != 0;
    c.big = f->big;
    f->page_size = dat_u32(&c);
    if (c.bad)
        return error_set(err, -MRD_EFORMAT, "trace.dat ends in its header");
    int rc = f->version == 7 ? read_version7(f, &c, err) : read_version6(f, &c);
    return rc == -MRD_ENOMEM ? error_set(err, rc, "out of memory for the head of trace.dat") : rc;
}

struct slice dat_file_clock(const struct dat_file *f)
{
    const uint8_t *open = f->clocks.len ? memchr(f->clocks.p, '[', f->clocks.len) : NULL;
    if (!open)
        return slice_str("local");
    size_t left = f->clocks.len - (size_t)(open + 1 - f->clocks.p);
    const uint8_t *close = memchr(open + 1, ']', left);
    return close ? slice_of(open + 1, (size_t)(close - open - 1)) : slice_str("local");
}

void dat_file_close(struct dat_file *f)
{
    for (size_t i = 0; i < f->buffers.n; i++)
        vec_free(&f->buffers.p[i].cpus);
    vec_free(&f->buffers);
    vec_free(&f->formats);
    vec_free(&f->cpustats);
    vec_free(&f->hooks);
    vec_free(&f->guests);
    vec_free(&f->procmaps);
    vec_free(&f->last_boots);
    for (size_t i = 0; i < f->inflated.n; i++)
        mem_free(f->inflated.p[i]);
    vec_free(&f->inflated);
    arena_free(&f->arena);
}
