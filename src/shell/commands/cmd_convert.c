/* tp_shell convert: a trace as a file of another format. */
#include "shell/convert/convert.h"
#include "shell/convert/packet_tools.h"

#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*convert)(struct shell *sh, struct out_file *out,
                   struct error *err); /* NULL: text, of the packets as they are */
} formats[] = {
    {"json", convert_json},
    {"systrace", convert_systrace},
    {"ctrace", convert_ctrace},
    {"text", NULL},
    {"profile", convert_profile},
    {"firefox", convert_firefox},
    {"collapsed", convert_collapsed},
    {"flamegraph", convert_flamegraph},
    {"collapsed-off-cpu", convert_collapsed_off_cpu},
    {"flamegraph-off-cpu", convert_flamegraph_off_cpu},
    {"collapsed-wakers", convert_collapsed_wakers},
    {"flamegraph-wakers", convert_flamegraph_wakers},
    {"otlp", convert_otlp},
};
#define FORMATS                                                                                                        \
    "json, systrace, ctrace, text, profile, firefox, collapsed, flamegraph, collapsed-off-cpu, flamegraph-off-cpu, "   \
    "collapsed-wakers, flamegraph-wakers, otlp"

int convert_rows(struct shell *sh, const char *sql, int (*each)(void *ctx, struct tp_result *r), void *ctx,
                 struct error *err)
{
    struct tp_result *r = NULL;
    int rc = tp_query(sh->tp, sql, &r), stop = 0;
    while (rc == 0 && stop == 0 && (rc = tp_step(r)) == 1) {
        rc = 0;
        stop = each(ctx, r);
    }
    if (rc < 0)
        rc = session_error(sh, rc, err);
    tp_result_close(r);
    return rc ? rc : stop;
}

int convert_json(struct shell *sh, struct out_file *out, struct error *err)
{
    int rc = tp_export_json(sh->tp, out_file_sink, out);
    return rc < 0 ? session_error(sh, rc, err) : 0;
}

int cmd_convert(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    size_t i = 0, n = sizeof formats / sizeof *formats;
    if (args->n == 0)
        return error_set(err, -MRD_EINVALID,
                         "convert: a format is needed (" FORMATS
                         "), e.g. tp_shell convert json trace.pftrace trace.json");
    while (i < n && strcmp(formats[i].name, args->p[0]) != 0)
        i++;
    if (i == n)
        return error_set(err, -MRD_EINVALID, "convert: unknown format '%s' (" FORMATS ")", args->p[0]);
    if (args->n > 3)
        return error_set(err, -MRD_EINVALID, "convert: give one trace and one file to write");
    if (args->n == 1 && isatty(STDIN_FILENO))
        return error_set(err, -MRD_EINVALID, "convert: a trace file is needed");
    const char *in = args->n > 1 ? args->p[1] : "-";
    int rc = session_spare_input(in, args->n > 2 ? args->p[2] : NULL, err);
    if (rc == 0 && !formats[i].convert)
        return packets_to_text(sh, err);
    rc = rc ? rc : session_load(sh, &in, 1, err);
    if (rc < 0)
        return rc;
    if (formats[i].convert == convert_profile)
        return args->n > 2 ? error_set(err, -MRD_EINVALID, "convert: profile writes many files: use --output-dir %s",
                                       args->p[2])
                           : convert_profile(sh, NULL, err);
    struct out_file *out = out_file_open(args->n > 2 ? args->p[2] : NULL, sh->tp, err);
    if (!out)
        return err->code;
    return out_file_finish(out, formats[i].convert(sh, out, err), err);
}
