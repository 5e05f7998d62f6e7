/* tp_shell export: the tables as a file of another format, or as files of columns. */
#include "base/suggest.h"
#include "shell/interrupt.h"
#include "shell/shell.h"
#include "shell/ticker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const column_formats[] = {"native", "rowbinary", "arrow", "arrow_stream", "parquet", "csv", "jsonl"};
enum { N_COLUMN_FORMATS = sizeof column_formats / sizeof *column_formats };

static bool writes_columns(const char *format)
{
    for (size_t i = 0; i < N_COLUMN_FORMATS; i++)
        if (strcmp(format, column_formats[i]) == 0)
            return true;
    return false;
}

static int unknown_format(const char *format, struct error *err)
{
    struct suggestion s = suggest(format, strlen(format));
    char text[80];
    suggest_among(&s, "sqlite");
    for (size_t i = 0; i < N_COLUMN_FORMATS; i++)
        suggest_among(&s, column_formats[i]);
    return error_set(
        err, -MRD_EINVALID,
        "export: unknown format '%s' (sqlite, native, rowbinary, arrow, arrow_stream, parquet, csv, jsonl)%s", format,
        suggest_text(&s, "", text, sizeof text));
}

static int check(const struct options *o, struct error *err)
{
    const struct text_list *args = &o->positionals;
    if (args->n < 2)
        return error_set(
            err, -MRD_EINVALID,
            "export: a format and a trace file are needed, e.g. tp_shell export sqlite trace.pftrace -o trace.db");
    if (strcmp(args->p[0], "arrow_tar") == 0 || strcmp(args->p[0], "perfetto") == 0)
        return error_set(err, -MRD_EUNSUPPORTED, "export: the format %s is not available yet", args->p[0]);
    const bool columns = writes_columns(args->p[0]);
    if (!columns && strcmp(args->p[0], "sqlite") != 0)
        return unknown_format(args->p[0], err);
    if (!o->output)
        return columns ? error_set(err, -MRD_EINVALID, "export: -o DIR is needed, e.g. -o tables")
                       : error_set(err, -MRD_EINVALID, "export: -o FILE is needed, e.g. -o trace.db");
    if (!columns && (o->tables || o->queries.n))
        return error_set(err, -MRD_EINVALID, "export: %s is for the other formats; sqlite writes everything",
                         o->tables ? "--tables" : "--query");
    return 0;
}

static int write_columns(struct shell *sh)
{
    const struct options *o = &sh->opt;
    struct tp_export_counts counts;
    const struct tp_export what = {.format = o->positionals.p[0],
                                   .directory = o->output,
                                   .tables = o->tables,
                                   .queries = o->queries.p,
                                   .n_queries = o->queries.n,
                                   .files = o->positionals.p + 1,
                                   .n_files = o->positionals.n - 1};
    int rc = tp_export_columns(sh->tp, &what, &counts);
    if (rc == 0)
        fprintf(stderr, "%" PRIu64 " tables, %" PRIu64 " rows, %" PRIu64 " bytes in %s\n", counts.files, counts.rows,
                counts.bytes, o->output);
    return rc;
}

int cmd_export(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    int rc = check(&sh->opt, err);
    if (rc == 0)
        rc = session_load(sh, args->p + 1, args->n - 1, err);
    if (rc < 0)
        return rc;
    struct ticker ticker;
    interrupt_command(sh->tp);
    ticker_start(&ticker, "Exporting", true);
    rc = writes_columns(args->p[0]) ? write_columns(sh) : tp_export_sqlite(sh->tp, sh->opt.output);
    ticker_stop(&ticker);
    rc = rc < 0 ? session_error(sh, rc, err) : 0;
    interrupt_end_command();
    return rc;
}
