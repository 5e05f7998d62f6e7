/* SQL modules of users: remembered by the handle, given to each engine that it opens. */
#include "api/tp_internal.h"

static void package_free(struct tp_package *p)
{
    for (size_t i = 0; i < p->n_texts; i++) {
        mem_free((char *)p->texts[i].name);
        mem_free((uint8_t *)p->texts[i].text.p);
    }
    mem_free(p->texts);
    mem_free(p->dir);
    mem_free(p->name);
}

static int apply(struct tp *tp, const struct tp_package *p)
{
    struct module_registry *modules = dialect_modules(tp->engine);
    if (!modules)
        return error_set(&tp->err, -MRD_EUNSUPPORTED, "this build has no SQL modules");
    if (p->stdlib)
        return module_registry_override_stdlib(modules, p->dir, &tp->err);
    if (p->dir)
        return module_registry_add_dir(modules, p->dir, p->name, p->replace, &tp->err);
    return module_registry_add(modules, p->name, p->texts, p->n_texts, p->replace, &tp->err);
}

int tp_apply_packages(struct tp *tp)
{
    int rc = 0;
    size_t kept = 0;
    for (size_t i = 0; i < tp->packages.n; i++) {
        struct error first = tp->err;
        int failed = apply(tp, &tp->packages.p[i]);
        if (failed == 0) {
            tp->packages.p[kept++] = tp->packages.p[i];
            continue;
        }
        package_free(&tp->packages.p[i]);
        if (rc)
            tp->err = first;
        rc = rc ? rc : failed;
    }
    tp->packages.n = kept;
    return rc;
}

void tp_free_packages(struct tp *tp)
{
    for (size_t i = 0; i < tp->packages.n; i++)
        package_free(&tp->packages.p[i]);
    vec_free(&tp->packages);
}

/* Modules of one name that the engines to come would get twice: the engine in use has taken `p` in their place, or it
 * is another view's, which did not know them. */
static void forget_before(struct tp *tp, struct tp_package *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < tp->packages.n; i++) {
        struct tp_package *old = &tp->packages.p[i];
        if (old->texts && p->texts && strcmp(old->name, p->name) == 0) {
            p->replace |= old->replace;
            package_free(old);
        } else {
            tp->packages.p[kept++] = *old;
        }
    }
    tp->packages.n = kept;
}

/* Takes over `p`; what cannot be added is forgotten. */
static int add(struct tp *tp, struct tp_package p, bool whole)
{
    tp_done(tp, 0);
    int rc = whole ? 0 : -MRD_ENOMEM;
    if (rc == 0 && tp->remote)
        rc = error_set(&tp->err, -MRD_EUNSUPPORTED, "the trace is on a server; add the modules there");
    if (rc == 0 && tp->engine)
        rc = apply(tp, &p);
    if (rc == 0 && tp->engine)
        forget_before(tp, &p);
    if (rc == 0 && !vec_push(&tp->packages, p))
        rc = -MRD_ENOMEM;
    if (rc < 0)
        package_free(&p);
    return tp_done(tp, rc);
}

int tp_add_sql_dir(struct tp *tp, const char *dir, const char *package, bool replace)
{
    struct tp_package p = {.dir = mem_strdup(dir), .name = package ? mem_strdup(package) : NULL, .replace = replace};
    return add(tp, p, p.dir && (!package || p.name));
}

int tp_override_stdlib(struct tp *tp, const char *dir)
{
    struct tp_package p = {.dir = mem_strdup(dir), .stdlib = true};
    return add(tp, p, p.dir != NULL);
}

int tp_add_sql_modules(struct tp *tp, const char *package, const struct tp_module *modules, size_t n, bool replace)
{
    struct tp_package p = {.name = mem_strdup(package), .replace = replace};
    p.texts = mem_zalloc((n ? n : 1) * sizeof *p.texts);
    bool whole = p.name && p.texts;
    for (size_t i = 0; i < n && whole; i++, p.n_texts++) {
        p.texts[i].name = mem_strdup(modules[i].name);
        p.texts[i].text.p = (uint8_t *)mem_strndup(modules[i].sql, modules[i].len);
        p.texts[i].text.len = modules[i].len;
        whole = p.texts[i].name && p.texts[i].text.p;
    }
    return add(tp, p, whole);
}
