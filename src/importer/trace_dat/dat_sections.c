/* The sections of version 7: options lead to them, and may be compressed as they may. */
#include "importer/trace_dat/dat_file.h"

#include "wire/inflate.h"

enum {
    SECTION_OPTIONS = 0,
    SECTION_BUFFER = 3,
    SECTION_HEADER_INFO = 16,
    SECTION_FTRACE_FORMATS = 17,
    SECTION_EVENT_FORMATS = 18,
    SECTION_KALLSYMS = 19,
    SECTION_PRINTK = 20,
    SECTION_CMDLINES = 21,
    SECTION_BUFFER_TEXT = 22,
    SECTION_COMPRESSED = 1, /* flag */
    OPTION_DONE = 0,
    MAX_OPTION_SECTIONS = 1024,
    MAX_PLAIN = 1 << 30,
    MAX_RATIO = 1000, /* of the bytes of all sections to those of the file */
};

/* What is in a section, decompressed. */
static int open_section(struct dat_file *f, uint64_t offset, unsigned id, struct dat_cursor *out)
{
    *out = (struct dat_cursor){.big = f->big, .bad = true};
    if (offset > f->bytes.len)
        return 0;
    struct dat_cursor c = {f->bytes.p + offset, f->bytes.p + f->bytes.len, f->big, false};
    unsigned got = dat_u16(&c), flags = dat_u16(&c);
    (void)dat_u32(&c); /* where its description stands */
    struct slice body = dat_bytes(&c, dat_u64(&c));
    if (got != id || (c.bad && !body.len))
        return 0;
    f->truncated |= c.bad;
    if (!(flags & SECTION_COMPRESSED)) {
        *out = (struct dat_cursor){body.p, body.p + body.len, f->big, false};
        return 0;
    }
    struct dat_cursor b = {body.p, body.p + body.len, f->big, false};
    uint32_t packed = dat_u32(&b), plain = dat_u32(&b);
    struct slice data = dat_bytes(&b, packed);
    f->plain += plain; /* a section that many options lead to counts as often */
    if (b.bad || f->compression == DAT_PLAIN || plain > MAX_PLAIN || f->plain / MAX_RATIO > f->bytes.len)
        return 0;
    uint8_t *to = mem_alloc(plain ? plain : 1);
    struct inflater *z = inflater_open(f->compression == DAT_ZSTD ? INFLATE_ZSTD : INFLATE_DEFLATE);
    size_t written = 0;
    int rc = to && z && vec_push(&f->inflated, to) ? 0 : -MRD_ENOMEM;
    if (rc)
        mem_free(to);
    else if (inflater_run(z, &data, to, plain, &written, NULL) == -MRD_ENOMEM)
        rc = -MRD_ENOMEM;
    else
        *out = (struct dat_cursor){to, to + written, f->big, written != plain};
    inflater_close(z);
    return rc;
}

/* An option BUFFER: its name and clock, the size of sub-buffers, and where the data of each CPU lie. */
static int read_buffer(struct dat_file *f, struct slice option)
{
    struct dat_cursor c = {option.p, option.p + option.len, f->big, false};
    uint64_t section = dat_u64(&c);
    struct slice name = dat_text(&c), clock = dat_text(&c);
    uint32_t page_size = dat_u32(&c), n = dat_u32(&c);
    struct dat_buffer *b = c.bad ? NULL : dat_add_buffer(f, name);
    if (!b) {
        f->bad_sections++;
        return c.bad || f->buffers.n == DAT_MAX_BUFFERS ? 0 : -MRD_ENOMEM;
    }
    b->clock = clock;
    b->page_size = page_size;
    if (section <= f->bytes.len) {
        struct dat_cursor h = {f->bytes.p + section, f->bytes.p + f->bytes.len, f->big, false};
        bool is_buffer = dat_u16(&h) == SECTION_BUFFER;
        b->compressed = dat_u16(&h) & SECTION_COMPRESSED;
        f->bad_sections += !is_buffer;
    } else {
        f->truncated = true;
    }
    f->bad_sections += n > DAT_MAX_CPUS; /* each CPU has its data in one place */
    for (n = n < DAT_MAX_CPUS ? n : DAT_MAX_CPUS; n && !c.bad; n--) {
        struct dat_cpu row = {.cpu = dat_u32(&c)};
        row.offset = dat_u64(&c);
        row.size = dat_u64(&c);
        if (!c.bad && !vec_push(&b->cpus, row))
            return -MRD_ENOMEM;
    }
    f->bad_sections += c.bad;
    return 0;
}

/* A section that an option of the same number leads to. */
static int read_part(struct dat_file *f, unsigned id, struct slice option)
{
    struct dat_cursor o = {option.p, option.p + option.len, f->big, false}, c;
    uint64_t offset = dat_u64(&o);
    int rc = o.bad ? 0 : open_section(f, offset, id, &c);
    if (o.bad || rc)
        return rc;
    if (c.bad) {
        f->bad_sections++;
        return 0;
    }
    switch (id) {
    case SECTION_HEADER_INFO:
        rc = dat_read_head_info(f, &c);
        break;
    case SECTION_FTRACE_FORMATS:
        rc = dat_read_ftrace_formats(f, &c);
        break;
    case SECTION_EVENT_FORMATS:
        rc = dat_read_event_formats(f, &c);
        break;
    case SECTION_KALLSYMS:
        f->kallsyms = dat_bytes(&c, dat_u32(&c));
        break;
    case SECTION_PRINTK:
        f->printk = dat_bytes(&c, dat_u32(&c));
        break;
    case SECTION_CMDLINES:
        f->cmdlines = dat_bytes(&c, dat_u64(&c));
        break;
    }
    f->bad_sections += c.bad;
    return rc;
}

static int read_option(struct dat_file *f, unsigned id, struct slice data)
{
    if (id == SECTION_BUFFER)
        return read_buffer(f, data);
    if (id >= SECTION_HEADER_INFO && id <= SECTION_CMDLINES)
        return read_part(f, id, data);
    if (id == SECTION_BUFFER_TEXT)
        f->latency_text = true;
    return dat_read_option(f, id, data);
}

/* Whether a section of options is read for the first time: they may lead in a circle. */
static bool is_first_visit(uint64_t *visited, unsigned n, uint64_t offset)
{
    for (unsigned i = 0; i < n; i++)
        if (visited[i] == offset)
            return false;
    visited[n] = offset;
    return true;
}

int dat_read_sections(struct dat_file *f, uint64_t next)
{
    uint64_t visited[MAX_OPTION_SECTIONS];
    int rc = 0;
    for (unsigned n = 0; next && !rc; n++) {
        struct dat_cursor c;
        if (n == MAX_OPTION_SECTIONS || !is_first_visit(visited, n, next)) {
            f->bad_sections++;
            break;
        }
        rc = open_section(f, next, SECTION_OPTIONS, &c);
        if (rc || c.bad) {
            f->truncated |= !rc;
            break;
        }
        for (next = 0; !rc && !c.bad;) {
            unsigned id = dat_u16(&c);
            struct slice data = dat_bytes(&c, dat_u32(&c));
            if (id == OPTION_DONE && !c.bad) {
                struct dat_cursor d = {data.p, data.p + data.len, f->big, false};
                next = dat_u64(&d);
                break;
            }
            if (!c.bad)
                rc = read_option(f, id, data);
        }
        f->truncated |= c.bad;
    }
    return rc;
}
