/* Files of ftrace's text: plain, out of atrace, pages of systrace, and compressed ones. */
#include "importer/clock/file_clock.h"
#include "importer/lines/line_reader.h"
#include "importer/text/systrace.h"
#include "importer/text/text_file.h"

enum { HEAD_BYTES = 128 /* where marks of the beginning are looked for */ };

enum part {
    PART_LINES,   /* of the trace */
    PART_PAGE,    /* HTML outside of sections */
    PART_SECTION, /* its kind is not known yet */
    PART_PROCESSES,
    PART_CGROUPS,
};

struct systrace_file {
    struct importer *im;
    struct systrace *lines;
    struct file_clock clock;
    struct machine_ctx *m;
    struct line_reader reader;
    enum part part;
    struct systrace_dump dump;
    bool bad_dump;
    bool begun; /* the head has been looked at */
    VEC(uint8_t)
    head;
};

static bool to_ns(void *ctx, int64_t value, int64_t *ns)
{
    struct systrace_file *f = ctx;
    return file_clock_to_trace_time(&f->clock, value, f->reader.at, ns);
}

static void anchor(void *ctx, int64_t ns, uint32_t clock, int64_t there)
{
    struct systrace_file *f = ctx;
    file_clock_anchor(&f->clock, ns, clock, there);
}

static bool has_text(struct slice line, const char *text)
{
    return line.len && memmem(line.p, line.len, text, strlen(text));
}

static bool trace_line(struct systrace_file *f, struct slice line)
{
    if (!line.len || line.p[0] == '#')
        return true;
    if (has_text(line, "</script>"))
        return false;
    if (!systrace_add_line(f->lines, line))
        stats_add(&f->im->st->stats, f->m->id, STAT_systrace_parse_failure, 1);
    return true;
}

static bool each_line(void *ctx, struct slice line, int64_t end, bool in_place)
{
    struct systrace_file *f = ctx;
    (void)end;
    (void)in_place;
    if (line.len && line.p[line.len - 1] == '\r')
        line.len--;
    if (f->part == PART_LINES)
        return trace_line(f, line);
    if (f->part != PART_PAGE && has_text(line, "</script>")) {
        f->part = PART_PAGE;
    } else if (f->part == PART_PAGE) {
        if (has_text(line, "<script class=\"trace-data\" type=\"application/text\">"))
            f->part = PART_SECTION;
    } else if (slice_starts(line, "#") && has_text(line, "TASK-PID")) {
        f->part = PART_LINES;
    } else if (slice_starts(line, "PROCESS DUMP")) {
        f->part = PART_PROCESSES;
    } else if (slice_starts(line, "CGROUP DUMP")) {
        f->part = PART_CGROUPS;
    } else if (f->part == PART_PROCESSES && !systrace_dump_line(f->lines, &f->dump, line)) {
        f->bad_dump = true;
        return false;
    }
    return true;
}

static void *open_file(struct importer *im)
{
    struct systrace_file *f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    f->im = im;
    f->reader = (struct line_reader){.each = each_line, .ctx = f};
    f->lines = systrace_open(im, to_ns, anchor, f, false);
    f->m = text_machine(im);
    file_clock_open(&f->clock, im, CLOCK_ID_MONOTONIC);
    if (!f->lines) {
        mem_free(f);
        return NULL;
    }
    return f;
}

static int feed(struct systrace_file *f, struct slice bytes, struct error *err)
{
    if (!line_reader_feed(&f->reader, bytes) || f->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (f->bad_dump)
        return error_set(err, -MRD_EFORMAT, "PROCESS DUMP: an id is not a number (line before byte %lld)",
                         (long long)f->reader.at);
    return 0;
}

/* What stands before the trace is passed over. Returns how many bytes that is. */
static size_t look_at_head(struct systrace_file *f, struct slice head)
{
    static const char mark[] = "TRACE:\n";
    size_t at = 0, look = head.len < HEAD_BYTES ? head.len : HEAD_BYTES;
    f->begun = true;
    const uint8_t *m = look ? memmem(head.p, look, mark, sizeof mark - 1) : NULL;
    if (m)
        at = (size_t)(m - head.p) + sizeof mark - 1;
    struct slice rest = slice_from(head, at), line;
    if (slice_starts(rest, "cpus=") && memchr(rest.p, '\n', rest.len)) {
        line_next(&rest, &line, NULL);
        at = (size_t)(rest.p - head.p);
    }
    if (at < head.len && head.p[at] == '<')
        f->part = PART_PAGE;
    return at;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct systrace_file *f = self;
    if (f->begun)
        return feed(f, bytes, err);
    if (f->head.n || bytes.len < 2 * HEAD_BYTES) { /* a small piece */
        if (!vec_reserve(&f->head, f->head.n + bytes.len))
            return error_set(err, -MRD_ENOMEM, "out of memory");
        memcpy(f->head.p + f->head.n, bytes.p, bytes.len);
        f->head.n += bytes.len;
        if (f->head.n < 2 * HEAD_BYTES)
            return 0;
        bytes = slice_of(f->head.p, f->head.n);
    }
    return feed(f, slice_from(bytes, look_at_head(f, bytes)), err);
}

/* A last line without its line feed is not whole: it is not read. */
static int end_file(void *self, struct error *err)
{
    struct systrace_file *f = self;
    struct slice head = slice_of(f->head.p, f->head.n);
    int rc = f->begun ? 0 : feed(f, slice_from(head, look_at_head(f, head)), err);
    if (f->part != PART_PAGE)
        text_check_end(f->im, &f->reader);
    return rc;
}

static void close_file(void *self)
{
    struct systrace_file *f = self;
    systrace_close(f->lines);
    line_reader_free(&f->reader);
    vec_free(&f->head);
    mem_free(f);
}

const struct format_reader systrace_format_reader = {
    .format = FORMAT_SYSTRACE, .open = open_file, .write = write_file, .end = end_file, .close = close_file};
