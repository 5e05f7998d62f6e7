/* tp_shell diff: what changed between two recordings, or two sets of them. */
#include "base/suggest.h"
#include "shell/commands/compare_load.h"
#include "shell/commands/diff_flame.h"
#include "shell/commands/diff_sql.h"
#include "shell/compare/diff_output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct printed {
    const struct diff_format *format;
    struct diff_report report;
};

static void print(struct text_out *o, const void *what)
{
    const struct printed *p = what;
    p->format->print(o, &p->report);
}

/* "0.05", "5%"; *out stays when the flag was not given. */
static int parse_part(const char *flag, const char *text, double most, double *out, struct error *err)
{
    char *end;
    if (!text)
        return 0;
    errno = 0;
    double v = strtod(text, &end);
    if (*end == '%') {
        v /= 100;
        end++;
    }
    if (errno || end == text || *end || !(v >= 0) || v > most)
        return error_set(err, -MRD_EINVALID, "%s: '%s' is not a number from 0 to %g; 5%% is the same as 0.05", flag,
                         text, most);
    *out = v;
    return 0;
}

static const struct diff_format *format_of(const struct shell *sh, struct error *err)
{
    const char *name = sh->opt.format ? sh->opt.format : "table", *names[DIFF_FORMATS];
    for (size_t i = 0; i < DIFF_FORMATS; i++) {
        names[i] = diff_formats[i].name;
        if (strcmp(names[i], name) == 0)
            return &diff_formats[i];
    }
    suggest_refuse(err, "--format", name, names, DIFF_FORMATS);
    return NULL;
}

/* --by: whether lines are of control groups. */
static int parse_by(const struct shell *sh, bool *by_cgroup, struct error *err)
{
    static const char *const names[] = {"process", "cgroup"};
    const char *by = sh->opt.by ? sh->opt.by : names[0];
    *by_cgroup = strcmp(by, names[1]) == 0;
    if (!*by_cgroup && strcmp(by, names[0]) != 0)
        return suggest_refuse(err, "--by", by, names, 2);
    return *by_cgroup && sh->opt.sql ? error_set(err, -MRD_EINVALID, "--by does not belong to --sql") : 0;
}

/* How many of the traces are side A: those before "--", or the first of two. */
static int split_sides(const struct shell *sh, size_t *n_a, struct error *err)
{
    const struct options *o = &sh->opt;
    *n_a = o->positionals.dashes ? o->positionals.dashes - 1 : 1;
    if (o->positionals.dashes && *n_a > 0 && *n_a < o->positionals.n)
        return 0;
    if (!o->positionals.dashes && o->positionals.n == 2)
        return 0;
    return error_set(err, -MRD_EINVALID,
                     "diff: give two traces, or two sets with -- between them: tp_shell diff base/*.pftrace -- "
                     "new/*.pftrace");
}

static int read_flame(void *ctx, struct shell *sh, const char *path, int side, struct error *err)
{
    return diff_flame_add(ctx, sh, path, side, err);
}

static int compare(struct shell *sh, size_t n_a, bool by_cgroup, const struct diff_options *options, struct printed *p,
                   struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    struct run_set set = {.by_cgroup = by_cgroup};
    struct diff diff = {0};
    struct diff_flame flame = {0};
    const struct compare_hook hook = {read_flame, &flame};
    int rc = 0;
    for (size_t i = 0; i < args->n && rc == 0; i++)
        rc = compare_add(sh, &set, args->p[i], i >= n_a, sh->opt.flamegraph ? &hook : NULL, err);
    if (rc == 0)
        rc = diff_compute(&set, options, &diff, err);
    if (rc == 0) {
        p->report = (struct diff_report){&set, &diff, options->alpha, sh->opt.all_lines};
        rc = compare_write(sh->opt.output, print, p, err);
    }
    if (rc == 0 && sh->opt.flamegraph)
        rc = diff_flame_write(&flame, sh->opt.flamegraph, err);
    if (rc == 0)
        rc = diff.findings > 0;
    diff_flame_free(&flame);
    diff_free(&diff);
    run_set_free(&set);
    return rc;
}

int cmd_diff(struct shell *sh, struct error *err)
{
    struct diff_options options = {0.05, 0.05};
    struct printed p = {.format = format_of(sh, err)};
    size_t n_a = 0;
    bool by_cgroup = false;
    if (!p.format)
        return -MRD_EINVALID;
    int rc = parse_part("--alpha", sh->opt.alpha, 0.5, &options.alpha, err);
    if (rc == 0)
        rc = parse_part("--min-change", sh->opt.min_change, 1e6, &options.min_change, err);
    if (rc == 0)
        rc = split_sides(sh, &n_a, err);
    if (rc == 0)
        rc = parse_by(sh, &by_cgroup, err);
    if (rc == 0 && sh->opt.sql && sh->opt.positionals.n != 2)
        rc = error_set(err, -MRD_EINVALID, "--sql compares two traces, not sets of them");
    if (rc == 0 && sh->opt.sql)
        return diff_sql(sh, (const char *const[]){sh->opt.positionals.p[0], sh->opt.positionals.p[1]}, err);
    if (rc == 0 && sh->opt.key)
        rc = error_set(err, -MRD_EINVALID, "--key belongs to --sql");
    return rc < 0 ? rc : compare(sh, n_a, by_cgroup, &options, &p, err);
}
