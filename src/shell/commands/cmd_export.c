/* tp_shell export: the tables as a file of another format. */
#include "base/suggest.h"
#include "shell/interrupt.h"
#include "shell/shell.h"
#include "shell/ticker.h"

#include <string.h>

static int unknown_format(const char *format, struct error *err)
{
    struct suggestion s = suggest(format, strlen(format));
    char text[80];
    suggest_among(&s, "sqlite");
    return error_set(err, -MRD_EINVALID, "export: unknown format '%s' (sqlite)%s", format,
                     suggest_text(&s, "", text, sizeof text));
}

int cmd_export(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    if (args->n < 2)
        return error_set(
            err, -MRD_EINVALID,
            "export: a format and a trace file are needed, e.g. tp_shell export sqlite trace.pftrace -o trace.db");
    if (strcmp(args->p[0], "arrow_tar") == 0 || strcmp(args->p[0], "perfetto") == 0)
        return error_set(err, -MRD_EUNSUPPORTED, "export: the format %s is not available yet", args->p[0]);
    if (strcmp(args->p[0], "sqlite") != 0)
        return unknown_format(args->p[0], err);
    if (!sh->opt.output)
        return error_set(err, -MRD_EINVALID, "export: -o FILE is needed, e.g. -o trace.db");
    int rc = session_load(sh, args->p + 1, args->n - 1, err);
    if (rc < 0)
        return rc;
    struct ticker ticker;
    interrupt_command(sh->tp);
    ticker_start(&ticker, "Exporting", true);
    rc = tp_export_sqlite(sh->tp, sh->opt.output);
    ticker_stop(&ticker);
    rc = rc < 0 ? session_error(sh, rc, err) : 0;
    interrupt_end_command();
    return rc;
}
