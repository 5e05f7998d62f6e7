/* Collapsed stacks, as flame graph tools take them: "a;b;c COUNT" a line. */
#include "importer/text/text_formats.h"

#include "importer/lines/line_reader.h"
#include "importer/profiling/profile_file.h"
#include "importer/text/text_file.h"

struct collapsed {
    struct importer *im;
    struct machine_ctx *m;
    struct line_reader lines;
    int64_t profile; /* row of aggregate_profile; COL_NULL before the first sample */
    uint32_t mapping;
};

static uint32_t stack_of(struct collapsed *c, struct slice stack)
{
    uint32_t callsite = CALLSITE_NONE;
    while (stack.len) {
        const uint8_t *end = memchr(stack.p, ';', stack.len);
        size_t n = end ? (size_t)(end - stack.p) : stack.len;
        if (n) {
            uint32_t frame = profile_file_frame(c->m, c->mapping, import_slice(c->im, slice_to(stack, n)), 0);
            callsite = stack_profile_callsite(c->m, callsite, frame);
        }
        stack = slice_from(stack, end ? n + 1 : n);
    }
    return callsite;
}

/* A count above what fits is the largest that does. */
static bool read_count(struct slice s, int64_t *count)
{
    if (number_decimal(s, count))
        return *count > 0;
    if (s.len && s.p[0] == '+')
        s = slice_from(s, 1);
    for (size_t i = 0; i < s.len; i++)
        if (!is_digit(s.p[i]))
            return false;
    *count = INT64_MAX;
    return s.len > 0;
}

static bool each_line(void *ctx, struct slice line, int64_t end, bool in_place)
{
    struct collapsed *c = ctx;
    int64_t count;
    (void)end;
    (void)in_place;
    line = trim_blanks(line);
    const uint8_t *space = line.len ? memrchr(line.p, ' ', line.len) : NULL;
    if (!space || line.p[0] == '#' || !read_count(slice_from(line, (size_t)(space + 1 - line.p)), &count))
        return true;
    struct storage *st = c->im->st;
    if (c->profile == COL_NULL) {
        c->mapping = profile_file_mapping(c->m, import_str(c->im, "[collapsed_stack]"));
        c->profile = aggregate_profile_insert(
            st, &(struct aggregate_profile_row){.scope = import_str(c->im, "collapsed_stack_file"),
                                                .name = import_str(c->im, "collapsed_stack samples"),
                                                .sample_type_type = import_str(c->im, "samples"),
                                                .sample_type_unit = import_str(c->im, "count")});
    }
    uint32_t callsite = stack_of(c, slice_to(line, (size_t)(space - line.p)));
    if (callsite != CALLSITE_NONE)
        aggregate_sample_insert(st, &(struct aggregate_sample_row){.aggregate_profile_id = c->profile,
                                                                   .callsite_id = callsite,
                                                                   .value = (double)count});
    return true;
}

static void *open_file(struct importer *im)
{
    struct collapsed *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    *c = (struct collapsed){.im = im, .m = text_machine(im), .lines = {.each = each_line}, .profile = COL_NULL};
    c->lines.ctx = c;
    return c;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct collapsed *c = self;
    if (!line_reader_feed(&c->lines, bytes) || c->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

static int end_file(void *self, struct error *err)
{
    struct collapsed *c = self;
    (void)err;
    text_read_end(c->im, &c->lines);
    return 0;
}

static void close_file(void *self)
{
    line_reader_free(&((struct collapsed *)self)->lines);
    mem_free(self);
}

const struct format_reader collapsed_format_reader = {.format = FORMAT_COLLAPSED,
                                                      .fixed_clock = true,
                                                      .open = open_file,
                                                      .write = write_file,
                                                      .end = end_file,
                                                      .close = close_file};
