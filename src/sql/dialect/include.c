/* INCLUDE PERFETTO MODULE: names and wildcards to modules, each run once. */
#include "sql/dialect/undo.h"

#include <stdio.h>

/* Fails inside the frame that asked for the module. */
static int fail(struct dialect *d, const struct sql_frame *parent, uint32_t at, struct error *err, const char *text)
{
    struct sql_message m = {0};
    sql_message_add(&m, "Traceback (most recent call last):\n");
    if (parent)
        sql_message_add_frames(&m, parent, at);
    sql_message_add(&m, "%s", text);
    return dialect_report(d, &m, -MRD_ESQL, err);
}

/* The last line of a traceback. */
static const char *last_line(const char *text)
{
    const char *nl = strrchr(text, '\n');
    return nl ? nl + 1 : text;
}

static int include_module(struct dialect *d, struct sql_module *m, const struct sql_frame *parent, uint32_t at,
                          struct error *err)
{
    char text[700];
    switch (m->state) {
    case MODULE_DONE:
        return 0;
    case MODULE_RUNNING:
        snprintf(text, sizeof text,
                 "INCLUDE: cycle detected \xe2\x80\x94 module '%s' is already mid-import in this execution.", m->name);
        return fail(d, parent, at, err, text);
    case MODULE_FAILED:
        snprintf(text, sizeof text, "INCLUDE: module '%s' failed before: %s", m->name, m->reason ? m->reason : "");
        return fail(d, parent, at, err, text);
    default:
        break;
    }
    if (d->include_depth >= DIALECT_MAX_INCLUDE_DEPTH)
        return fail(d, parent, at, err, "INCLUDE: modules are nested too deeply");
    struct sql_frame frame = {.source = sql_source_new(SOURCE_MODULE, m->name, slice_of(m->text, m->len)),
                              .parent = (struct sql_frame *)(uintptr_t)parent,
                              .call_at = at};
    if (!frame.source)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    struct error local = {0};
    if (!err)
        err = &local;
    m->state = MODULE_RUNNING;
    size_t mark = undo_mark(d);
    d->include_depth++;
    int rc = dialect_run_frame(d, &frame, "INCLUDE: Included module returning values.", err);
    d->include_depth--;
    if (rc)
        undo_back_to(d, mark);
    else
        undo_keep(d, mark);
    m->state = rc ? MODULE_FAILED : MODULE_DONE;
    if (rc == -MRD_ECANCELLED || rc == -MRD_ENOMEM)
        m->state = MODULE_NEW; /* not the module's fault */
    else if (rc)
        m->reason = mem_strdup(last_line(engine_error_text(d->e)));
    sql_source_unref(frame.source);
    return rc;
}

static bool wanted(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return n == 0 || (strncmp(name, prefix, n) == 0 && (name[n] == 0 || name[n] == '.'));
}

/* "a.*": everything at or below a; "*": everything. */
static int include_all(struct dialect *d, const char *prefix, const struct sql_frame *parent, uint32_t at,
                       struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < d->modules.packages.n && rc == 0; i++)
        for (size_t k = 0; k < d->modules.packages.p[i].modules.n && rc == 0; k++) {
            struct sql_module *m = &d->modules.packages.p[i].modules.p[k];
            if (wanted(m->name, prefix))
                rc = include_module(d, m, parent, at, err);
        }
    return rc;
}

int dialect_include_pattern(struct dialect *d, const char *pattern, const struct sql_frame *parent, uint32_t at,
                            struct error *err)
{
    char prefix[512], text[700];
    size_t len = strlen(pattern);
    if (len >= sizeof prefix)
        return fail(d, parent, at, err, "INCLUDE: the module's name is too long");
    if (strcmp(pattern, "*") == 0)
        return include_all(d, "", parent, at, err);
    memcpy(prefix, pattern, len + 1);
    bool all = len > 2 && strcmp(pattern + len - 2, ".*") == 0;
    if (all)
        prefix[len - 2] = 0;
    if (strchr(prefix, '*'))
        return fail(d, parent, at, err, "INCLUDE: a * may only be the last part of a module's name");
    struct sql_package *p = module_registry_package(&d->modules, prefix);
    if (!p) {
        snprintf(text, sizeof text, "INCLUDE: Package '%.*s' not found", (int)strcspn(prefix, "."), prefix);
        if (strncmp(prefix, "common.", 7) == 0)
            snprintf(
                text, sizeof text,
                "INCLUDE: Package 'common' was removed; what was in it is in slices, sched, counters and intervals");
        return fail(d, parent, at, err, text);
    }
    if (all)
        return include_all(d, prefix, parent, at, err);
    struct sql_module *m = sql_package_find(p, prefix);
    if (!m) {
        snprintf(text, sizeof text, "INCLUDE: unknown module '%s'", prefix);
        return fail(d, parent, at, err, text);
    }
    return include_module(d, m, parent, at, err);
}

int exec_include(struct exec *x, const struct parsed *p)
{
    char name[512];
    size_t n = 0;
    for (size_t i = 0; i < p->n_body; i++) {
        if (token_is_blank(p->body[i].kind))
            continue;
        if (n + p->body[i].len >= sizeof name)
            return exec_fail(x, p->body, "INCLUDE: the module's name is too long");
        memcpy(name + n, p->body[i].text, p->body[i].len);
        n += p->body[i].len;
    }
    name[n] = 0;
    return dialect_include_pattern(x->d, name, p->body->frame, p->body->at, x->err);
}

int dialect_include(struct engine *e, const char *module, struct error *err)
{
    return dialect_include_pattern(engine_dialect_ctx(e), module, NULL, 0, err);
}
