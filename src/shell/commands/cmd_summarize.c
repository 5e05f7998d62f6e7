/* tp_shell summarize: metrics and metadata of a trace by specs, as one message on standard output. */
#include "shell/output.h"
#include "shell/shell.h"
#include "shell/ticker.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_SPEC_BYTES = 16 << 20, MAX_SQL_BYTES = 64 << 20 };

struct summarizing {
    struct shell *sh;
    struct tp_summary what;
    VEC(struct tp_spec)
    specs;
    VEC(const char *)
    ids;
    char *ids_text; /* cut at the commas */
};

/* Takes a name's specs as they stand in its file. */
static int read_spec(struct summarizing *sm, const char *path, struct error *err)
{
    char *bytes;
    size_t len;
    int rc = file_read_all(path, MAX_SPEC_BYTES, &bytes, &len, err);
    if (rc < 0)
        return rc;
    if (vec_push(&sm->specs, (struct tp_spec){.bytes = bytes, .len = len, .name = path}))
        return 0;
    mem_free(bytes);
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int choose_metrics(struct summarizing *sm, const char *list, struct error *err)
{
    if (!list)
        return 0;
    sm->what.all_metrics = strcasecmp(list, "all") == 0;
    sm->ids_text = mem_strdup(list);
    bool whole = sm->ids_text != NULL;
    for (char *p = sm->ids_text, *comma; p && whole; p = comma) {
        comma = strchr(p, ',');
        if (comma)
            *comma++ = '\0';
        if (*p)
            whole = vec_push(&sm->ids, p);
    }
    return whole ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

static int choose_format(struct summarizing *sm, const char *format, struct error *err)
{
    sm->what.text = !format || strcmp(format, "text") == 0;
    if (sm->what.text || strcmp(format, "binary") == 0)
        return 0;
    return error_set(err, -MRD_EINVALID, "--format: unknown format '%s': use text or binary", format);
}

/* Over a connection every argument is a spec; else the first is the trace. */
static int read_arguments(struct summarizing *sm, struct error *err)
{
    const struct options *o = &sm->sh->opt;
    size_t first = o->remote ? 0 : 1;
    if (o->positionals.n < first)
        return error_set(err, -MRD_EINVALID,
                         "a trace file is needed, e.g. tp_shell summarize trace.pftrace spec.textproto");
    if (!o->metrics_v2 && !o->metadata_query) /* as Perfetto's shell, which says nothing */
        fprintf(stderr, "note: nothing is selected: use --metrics-v2 IDS (or all), or --metadata-query ID\n");
    int rc = choose_format(sm, o->format, err);
    if (rc == 0)
        rc = choose_metrics(sm, o->metrics_v2, err);
    for (size_t i = first; i < o->positionals.n && rc == 0; i++)
        rc = read_spec(sm, o->positionals.p[i], err);
    for (size_t i = 0; i < o->summary_spec.n && rc == 0; i++)
        rc = read_spec(sm, o->summary_spec.p[i], err);
    return rc;
}

static int run_post_query(struct shell *sh, struct error *err)
{
    const char *path = sh->opt.post_query;
    char *sql;
    size_t len;
    int rc = file_read_all(path, MAX_SQL_BYTES, &sql, &len, err);
    if (rc < 0)
        return rc;
    rc = shell_run_sql(sh, path, sql, len, OUTPUT_CLASSIC, 0, err);
    mem_free(sql);
    return rc;
}

static int summarize(struct summarizing *sm, struct error *err)
{
    void *bytes;
    size_t len;
    sm->what.specs = sm->specs.p;
    sm->what.n_specs = sm->specs.n;
    sm->what.metrics = sm->ids.p;
    sm->what.n_metrics = sm->ids.n;
    sm->what.metadata_query = sm->sh->opt.metadata_query;
    struct ticker ticker;
    ticker_start(&ticker, "Computing", false);
    int rc = tp_summarize(sm->sh->tp, &sm->what, &bytes, &len);
    ticker_stop(&ticker);
    if (rc < 0)
        return session_error(sm->sh, rc, err);
    if (!sm->sh->opt.post_query && len && (fwrite(bytes, 1, len, stdout) != len || fflush(stdout) != 0))
        rc = error_set(err, -MRD_EIO, "standard output: cannot write");
    tp_free(bytes);
    return rc == 0 && sm->sh->opt.post_query ? run_post_query(sm->sh, err) : rc;
}

int cmd_summarize(struct shell *sh, struct error *err)
{
    struct summarizing sm = {.sh = sh};
    int rc = read_arguments(&sm, err);
    if (rc < 0)
        error_prefix(err, "summarize");
    if (rc == 0)
        rc = session_load(sh, sh->opt.positionals.p, sh->opt.remote ? 0 : 1, err);
    int64_t start = shell_now_ns();
    if (rc == 0)
        rc = summarize(&sm, err);
    if (rc == 0)
        rc = session_write_perf(sh, shell_now_ns() - start, err);
    if (rc == 0 && sh->opt.interactive)
        rc = repl_run(sh, err);
    for (size_t i = 0; i < sm.specs.n; i++)
        mem_free((void *)sm.specs.p[i].bytes);
    vec_free(&sm.specs);
    vec_free(&sm.ids);
    mem_free(sm.ids_text);
    return rc;
}
