/* Traces as text and back, and without packed packets: what needs no import. */
#include "shell/convert/packet_tools.h"

#include "shell/convert/out_file.h"
#include "wire/packet_file.h"
#include "wire/trace_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct text_writer {
    const struct trace_message *trace;
    struct pb_writer text;
    struct out_file *out;
};

static int put_text(void *ctx, struct slice field)
{
    struct text_writer *w = ctx;
    pb_writer_clear(&w->text);
    trace_text_print(w->trace, field, 0, &w->text);
    return w->text.failed ? -MRD_ENOMEM : out_file_write(w->out, w->text.p, w->text.n);
}

static int put_field(void *ctx, struct slice field)
{
    return out_file_write(ctx, field.p, field.len);
}

static void tell(const struct packet_counts *c, const char *tail)
{
    if (c->damaged)
        fprintf(stderr, "note: %" PRIu64 " compressed packets cannot be read; they are written as they are\n",
                c->damaged);
    if (c->tail)
        fprintf(stderr, "note: %zu bytes at the end are not a whole packet; they are %s\n", c->tail, tail);
}

/* The arguments from positional 1 on: [IN] [OUT]. */
static int open_both(struct shell *sh, struct packet_file *in, struct out_file **out, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    if (args->n > 3)
        return error_set(err, -MRD_EINVALID, "%s: give one file to read and one to write", args->p[0]);
    if (args->n == 1 && isatty(STDIN_FILENO))
        return error_set(err, -MRD_EINVALID, "%s: give a file to read", args->p[0]);
    int rc = packet_file_open(in, args->n > 1 ? args->p[1] : "-", err);
    if (rc < 0)
        return rc;
    const char *path = args->n > 2 ? args->p[2] : NULL;
    *out = out_file_open(path, NULL, err);
    if (!*out)
        packet_file_close(in);
    return *out ? 0 : err->code;
}

static const char *input_name(const struct shell *sh)
{
    return sh->opt.positionals.n > 1 ? sh->opt.positionals.p[1] : "standard input";
}

static int finish(struct packet_file *in, struct out_file *out, int rc, struct error *err)
{
    if (rc == -MRD_ENOMEM)
        error_set(err, rc, "out of memory");
    if (rc >= 0 && mapped_file_shrank(&in->map))
        rc = error_set(err, -MRD_EIO, "the file became shorter while it was read; another program writes it");
    packet_file_close(in);
    return out_file_finish(out, rc, err);
}

int packets_to_text(struct shell *sh, struct error *err)
{
    struct packet_file in;
    struct packet_counts counts = {0};
    struct text_writer w = {.trace = trace_message_by_name("Trace")};
    int rc = open_both(sh, &in, &w.out, err);
    if (rc < 0)
        return rc;
    rc = packet_file_check(&in, input_name(sh), err);
    if (rc == 0)
        rc = packet_file_walk(&in, put_text, &w, &counts, err);
    pb_writer_free(&w.text);
    rc = finish(&in, w.out, rc, err);
    if (rc == 0)
        tell(&counts, "left out");
    return rc;
}

int packets_decompress(struct shell *sh, struct error *err)
{
    struct packet_file in;
    struct packet_counts counts = {0};
    struct out_file *out;
    int rc = open_both(sh, &in, &out, err);
    if (rc < 0)
        return rc;
    rc = packet_file_check(&in, input_name(sh), err);
    if (rc == 0)
        rc = packet_file_walk(&in, put_field, out, &counts, err);
    if (rc == 0 && counts.tail)
        rc = out_file_write(out, in.bytes.p + in.bytes.len - counts.tail, counts.tail);
    rc = finish(&in, out, rc, err);
    if (rc == 0)
        tell(&counts, "written as they are");
    return rc;
}

/* Hands on what was parsed, so that a text of any size takes little memory. */
static int flush(void *ctx, struct pb_writer *w)
{
    int rc = out_file_write(ctx, w->p, w->n);
    pb_writer_clear(w);
    return rc;
}

int packets_from_text(struct shell *sh, struct error *err)
{
    struct packet_file in;
    struct pb_writer w = {0};
    struct out_file *out;
    int rc = open_both(sh, &in, &out, err);
    if (rc < 0)
        return rc;
    rc = trace_text_parse(trace_message_by_name("Trace"), in.bytes, sh->opt.skip_unknown ? TRACE_TEXT_SKIP_UNKNOWN : 0,
                          &w, flush, out, err);
    if (rc == -MRD_EFORMAT)
        error_prefix(err, "%s", input_name(sh));
    pb_writer_free(&w);
    return finish(&in, out, rc, err);
}
