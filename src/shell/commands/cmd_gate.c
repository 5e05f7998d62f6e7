/* tp_shell gate: checks traces against rules and a baseline. */
#include "base/file.h"
#include "base/output_file.h"
#include "base/suggest.h"
#include "compare/gate.h"
#include "shell/commands/compare_load.h"
#include "shell/compare/gate_output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE = 1 << 20 };

struct gate {
    const char *rules_path;
    struct gate_rules rules;
    struct gate_baseline baseline;
    char baseline_path[4096];
    VEC(struct gate_result) results;
};

static const struct gate_format *format_of(const struct shell *sh, struct error *err)
{
    const char *name = sh->opt.format ? sh->opt.format : "text", *names[GATE_FORMATS];
    for (size_t i = 0; i < GATE_FORMATS; i++) {
        names[i] = gate_formats[i].name;
        if (strcmp(names[i], name) == 0)
            return &gate_formats[i];
    }
    suggest_refuse(err, "--format", name, names, GATE_FORMATS);
    return NULL;
}

static bool wants_baseline(const struct gate *g)
{
    bool any = false;
    for (size_t i = 0; i < g->rules.rules.n; i++)
        any |= g->rules.rules.p[i].wants_baseline;
    return any;
}

/* DIR/NAME-OF-THE-RULES.json */
static int name_baseline(struct gate *g, const char *dir, struct error *err)
{
    const char *base = strrchr(g->rules_path, '/');
    int n = snprintf(g->baseline_path, sizeof g->baseline_path, "%s/%s.json", dir, base ? base + 1 : g->rules_path);
    return n > 0 && (size_t)n < sizeof g->baseline_path
               ? 0
               : error_set(err, -MRD_EINVALID, "--baseline: the path is too long");
}

static int read_rules(struct gate *g, const struct options *o, struct error *err)
{
    char *text = NULL;
    size_t len = 0;
    if (!o->rules)
        return error_set(err, -MRD_EINVALID, "gate: --rules FILE is needed; docs/compare.md has the language");
    g->rules_path = o->rules;
    int rc = file_read_all(o->rules, MAX_FILE, &text, &len, err);
    if (rc == 0 && (rc = gate_rules_parse(&g->rules, slice_of(text, len), err)) < 0)
        error_prefix(err, "%s", o->rules);
    mem_free(text);
    if (rc == 0 && !o->baseline && (o->record || wants_baseline(g)))
        return error_set(err, -MRD_EINVALID, "gate: --baseline DIR is needed%s",
                         o->record ? " to record into" : ": a rule compares with it");
    return rc < 0 || !o->baseline ? rc : name_baseline(g, o->baseline, err);
}

static int read_baseline(struct gate *g, struct error *err)
{
    char *text = NULL;
    size_t len = 0;
    if (!wants_baseline(g))
        return 0;
    int rc = file_read_all(g->baseline_path, MAX_FILE, &text, &len, err);
    if (rc < 0) {
        error_prefix(err, "the baseline cannot be read (tp_shell gate --record makes it)");
        return rc;
    }
    rc = gate_baseline_parse(&g->baseline, slice_of(text, len), err);
    if (rc < 0)
        error_prefix(err, "%s", g->baseline_path);
    mem_free(text);
    return rc;
}

static int add_result(struct gate *g, struct gate_result r, const struct error *why, struct error *err)
{
    if (r.status == GATE_UNCHECKED)
        r.why = mem_strdup(why->text);
    return vec_push(&g->results, r) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

/* Checks every rule on the loaded trace. */
static int check(struct gate *g, const struct gate_trace *t, const char *path, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < g->rules.rules.n && rc == 0; i++) {
        const struct gate_rule *rule = &g->rules.rules.p[i];
        struct gate_result r = {.trace = path, .rule = rule};
        struct error why = {0};
        if (gate_value(&g->rules, rule, rule->left, t, &r.left, &why) < 0 ||
            gate_value(&g->rules, rule, rule->right, t, &r.right, &why) < 0)
            r.status = GATE_UNCHECKED;
        else
            r.status = gate_holds(rule->compare, r.left, r.right) ? GATE_PASSED : GATE_FAILED;
        rc = why.code == -MRD_ECANCELLED ? error_set(err, why.code, "%s", why.text) : add_result(g, r, &why, err);
    }
    return rc;
}

/* Keeps the left sides of the rules that compare with a baseline. */
static int record(struct gate *g, const struct gate_trace *t, const char *path, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < g->rules.rules.n && rc == 0; i++) {
        const struct gate_rule *rule = &g->rules.rules.p[i];
        double v;
        if (!rule->wants_baseline)
            continue;
        rc = gate_value(&g->rules, rule, rule->left, t, &v, err);
        if (rc == 0 && !isfinite(v))
            rc = error_set(err, -MRD_EINVALID, "'%s' is not a finite number", rule->left_text);
        if (rc < 0)
            return error_prefix(err, "%s", path);
        if (gate_baseline_add(&g->baseline, rule->left_text, v) < 0)
            rc = error_set(err, -MRD_ENOMEM, "out of memory");
    }
    return rc;
}

static int one_trace(struct shell *sh, struct gate *g, const char *path, struct error *err)
{
    char lost[256];
    struct error why = {0};
    int rc = compare_open(sh, path, &why);
    if (rc == 0) {
        struct gate_trace t = {sh->tp, (double)compare_losses(sh, lost, sizeof lost), &g->baseline};
        rc = (sh->opt.record ? record : check)(g, &t, path, err);
    } else if (sh->opt.record) {
        *err = why;
    } else {
        rc = add_result(g, (struct gate_result){.trace = path, .status = GATE_UNCHECKED}, &why, err);
    }
    compare_close(sh);
    return rc;
}

/* ---- what is written ---- */

struct file_sink {
    struct output_file file;
    struct error *err;
};

static int put_file(void *ctx, const void *bytes, size_t len)
{
    struct file_sink *s = ctx;
    return output_file_write(&s->file, bytes, len, s->err);
}

static int write_baseline(const struct gate *g, const char *dir, struct error *err)
{
    struct file_sink s = {.err = err};
    if (!wants_baseline(g))
        return error_set(err, -MRD_EINVALID, "%s: no rule compares with a baseline, so there is nothing to record",
                         g->rules_path);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "%s", dir);
    int rc = output_file_open(&s.file, g->baseline_path, err);
    if (rc < 0)
        return rc;
    rc = gate_baseline_print(&g->baseline, put_file, &s);
    return output_file_close(&s.file, rc, err);
}

struct printed {
    const struct gate_format *format;
    struct gate_report report;
};

static void print(struct text_out *o, const void *what)
{
    const struct printed *p = what;
    p->format->print(o, &p->report);
}

static int verdict(const struct gate *g)
{
    int status = 0;
    for (size_t i = 0; i < g->results.n; i++)
        if ((int)g->results.p[i].status > status)
            status = (int)g->results.p[i].status;
    return status; /* passed 0, failed 1, unchecked 2 */
}

int cmd_gate(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    struct gate g = {0};
    const struct gate_format *format = format_of(sh, err);
    if (!format)
        return -MRD_EINVALID;
    if (args->n == 0)
        return error_set(err, -MRD_EINVALID,
                         "gate: a trace file is needed, e.g. tp_shell gate --rules ci.rules trace.pftrace");
    int rc = read_rules(&g, &sh->opt, err);
    if (rc == 0 && !sh->opt.record)
        rc = read_baseline(&g, err);
    for (size_t i = 0; i < args->n && rc == 0; i++)
        rc = one_trace(sh, &g, args->p[i], err);
    if (rc == 0 && sh->opt.record) {
        rc = write_baseline(&g, sh->opt.baseline, err);
    } else if (rc == 0) {
        struct printed p = {format, {g.rules_path, g.results.p, g.results.n}};
        rc = compare_write(sh->opt.output, print, &p, err);
        rc = rc < 0 ? rc : verdict(&g);
    }
    for (size_t i = 0; i < g.results.n; i++)
        mem_free(g.results.p[i].why);
    vec_free(&g.results);
    gate_baseline_free(&g.baseline);
    gate_rules_free(&g.rules);
    return rc;
}
