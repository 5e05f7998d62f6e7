/* Packages of SQL modules: built in, given by the user, read from directories. */
#include "sql/dialect/module.h"

#include "base/file.h"
#include "sql/embedded.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void module_free(struct sql_module *m)
{
    mem_free(m->name);
    mem_free(m->owned);
    mem_free(m->reason);
}

static void package_free(struct sql_package *p)
{
    for (size_t i = 0; i < p->modules.n; i++)
        module_free(&p->modules.p[i]);
    vec_free(&p->modules);
    mem_free(p->name);
}

void module_registry_free(struct module_registry *r)
{
    for (size_t i = 0; i < r->packages.n; i++)
        package_free(&r->packages.p[i]);
    vec_free(&r->packages);
}

/* Does `name` begin with all of the parts of `prefix`? */
static bool starts_with_parts(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 && (name[n] == 0 || name[n] == '.');
}

static struct sql_package *add_package(struct module_registry *r, const char *name)
{
    struct sql_package *p = vec_add(&r->packages);
    if (p && !(p->name = mem_strdup(name))) {
        r->packages.n--;
        return NULL;
    }
    return p;
}

static int compare_modules(const void *a, const void *b)
{
    return strcmp(((const struct sql_module *)a)->name, ((const struct sql_module *)b)->name);
}

int module_registry_init(struct module_registry *r, struct error *err)
{
    size_t n;
    const struct embedded_sql *all = embedded_sql_all(&n);
    for (size_t i = 0; i < n; i++) {
        size_t part = strcspn(all[i].module, ".");
        struct sql_package *p = r->packages.n ? vec_last(&r->packages) : NULL;
        if (!p || strlen(p->name) != part || strncmp(p->name, all[i].module, part) != 0) {
            char *name = mem_strndup(all[i].module, part);
            p = name ? add_package(r, name) : NULL;
            mem_free(name);
            if (!p)
                return error_set(err, -MRD_ENOMEM, "out of memory");
            p->builtin = true;
        }
        struct sql_module m = {.name = mem_strdup(all[i].module), .text = all[i].text, .len = all[i].len};
        if (strcmp(p->name, "prelude") == 0)
            m.state = MODULE_DONE; /* the engine has run it */
        if (!m.name || !vec_push(&p->modules, m)) {
            mem_free(m.name);
            return error_set(err, -MRD_ENOMEM, "out of memory");
        }
    }
    for (size_t i = 0; i < r->packages.n; i++)
        qsort(r->packages.p[i].modules.p, r->packages.p[i].modules.n, sizeof(struct sql_module), compare_modules);
    return 0;
}

/* Copies the texts into *p, sorted by name. */
static int make_package(struct sql_package *p, const char *package, const struct module_text *texts, size_t n,
                        struct error *err)
{
    *p = (struct sql_package){.name = mem_strdup(package)};
    bool whole = p->name != NULL;
    for (size_t i = 0; i < n && whole; i++) {
        struct sql_module m = {.name = mem_strdup(texts[i].name),
                               .owned = mem_strndup((const char *)texts[i].text.p, texts[i].text.len),
                               .len = texts[i].text.len};
        m.text = m.owned;
        whole = m.name && m.owned && vec_push(&p->modules, m);
        if (!whole)
            module_free(&m);
    }
    if (!whole)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (p->modules.n)
        qsort(p->modules.p, p->modules.n, sizeof *p->modules.p, compare_modules);
    for (size_t i = 1; i < p->modules.n; i++)
        if (strcmp(p->modules.p[i - 1].name, p->modules.p[i].name) == 0)
            return error_set(err, -MRD_EINVALID, "SQL package '%s' has two modules named '%s'", package,
                             p->modules.p[i].name);
    return 0;
}

int module_registry_add(struct module_registry *r, const char *package, const struct module_text *texts, size_t n,
                        bool override, struct error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!starts_with_parts(texts[i].name, package) || strlen(texts[i].name) == strlen(package))
            return error_set(err, -MRD_EINVALID, "SQL module '%s' does not belong to package '%s'", texts[i].name,
                             package);
    for (size_t i = 0; i < r->packages.n && !override; i++) {
        const char *other = r->packages.p[i].name;
        if (starts_with_parts(other, package) || starts_with_parts(package, other))
            return error_set(err, -MRD_EEXISTS,
                             "SQL package '%s' clashes with package '%s', which exists; choose another name "
                             "or override it",
                             package, other);
    }
    struct sql_package made;
    int rc = make_package(&made, package, texts, n, err);
    if (rc == 0 && !vec_reserve(&r->packages, r->packages.n + 1))
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc) {
        package_free(&made);
        return rc;
    }
    for (size_t i = r->packages.n; i-- > 0;) {
        struct sql_package *p = &r->packages.p[i];
        if (!starts_with_parts(p->name, package) && !starts_with_parts(package, p->name))
            continue;
        package_free(p);
        memmove(p, p + 1, (r->packages.n - i - 1) * sizeof *p);
        r->packages.n--;
    }
    vec_push(&r->packages, made);
    return 0;
}

/* ---- directories ---- */

struct texts {
    struct module_text *p;
    size_t n;
    size_t cap;
};

static void texts_free(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++) {
        mem_free((char *)(uintptr_t)t->p[i].name);
        mem_free((char *)(uintptr_t)t->p[i].text.p);
    }
    vec_free(t);
}

enum { MAX_DIR_DEPTH = 32, MAX_MODULE_BYTES = 16 << 20 };

static int add_file(struct texts *out, const char *path, const char *module, struct error *err)
{
    char *text;
    size_t len;
    int rc = file_read_all(path, MAX_MODULE_BYTES, &text, &len, err);
    if (rc)
        return rc;
    struct module_text t = {mem_strndup(module, strlen(module) - 4), {(const uint8_t *)text, len}};
    if (t.name && vec_push(out, t))
        return 0;
    mem_free((char *)(uintptr_t)t.name);
    mem_free(text);
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static int read_dir(struct texts *out, const char *dir, const char *prefix, int depth, struct error *err)
{
    DIR *d = depth < MAX_DIR_DEPTH ? opendir(dir) : NULL;
    if (!d)
        return error_set(err, -MRD_ENOTFOUND, "SQL package: cannot read directory %s", dir);
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        char path[4096], module[1024];
        struct stat st;
        size_t len = strlen(e->d_name);
        if (e->d_name[0] == '.')
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= sizeof path ||
            (size_t)snprintf(module, sizeof module, "%s.%s", prefix, e->d_name) >= sizeof module)
            rc = error_set(err, -MRD_ELIMIT, "SQL package: the path of %s is too long", e->d_name);
        else if (stat(path, &st) != 0)
            continue;
        else if (S_ISDIR(st.st_mode))
            rc = read_dir(out, path, module, depth + 1, err);
        else if (S_ISREG(st.st_mode) && len > 4 && strcmp(e->d_name + len - 4, ".sql") == 0)
            rc = add_file(out, path, module, err);
    }
    closedir(d);
    return rc;
}

int module_registry_add_dir(struct module_registry *r, const char *dir, const char *name, bool override,
                            struct error *err)
{
    char trimmed[4096];
    size_t len = strlen(dir);
    struct texts texts = {0};
    while (len > 1 && dir[len - 1] == '/')
        len--;
    snprintf(trimmed, sizeof trimmed, "%.*s", (int)len, dir);
    if (!name || !*name) {
        const char *slash = strrchr(trimmed, '/');
        name = slash ? slash + 1 : trimmed;
    }
    int rc = read_dir(&texts, trimmed, name, 0, err);
    if (rc == 0 && texts.n == 0)
        rc = error_set(err, -MRD_ENOTFOUND, "SQL package: no .sql file below %s", dir);
    if (rc == 0)
        rc = module_registry_add(r, name, texts.p, texts.n, override, err);
    texts_free(&texts);
    return rc;
}

int module_registry_override_stdlib(struct module_registry *r, const char *dir, struct error *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return error_set_errno(err, errno, "standard library %s", dir);
    for (size_t i = r->packages.n; i-- > 0;) {
        struct sql_package *p = &r->packages.p[i];
        if (!p->builtin || strcmp(p->name, "prelude") == 0)
            continue;
        package_free(p);
        memmove(p, p + 1, (r->packages.n - i - 1) * sizeof *p);
        r->packages.n--;
    }
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || strcmp(e->d_name, "prelude") == 0 || stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
            continue;
        rc = module_registry_add_dir(r, path, e->d_name, false, err);
        if (rc == -MRD_ENOTFOUND)
            rc = 0; /* a directory without modules */
    }
    closedir(d);
    return rc;
}

struct sql_package *module_registry_package(const struct module_registry *r, const char *module)
{
    struct sql_package *best = NULL;
    for (size_t i = 0; i < r->packages.n; i++)
        if (starts_with_parts(module, r->packages.p[i].name) &&
            (!best || strlen(r->packages.p[i].name) > strlen(best->name)))
            best = &r->packages.p[i];
    return best;
}

struct sql_module *sql_package_find(const struct sql_package *p, const char *module)
{
    struct sql_module key = {.name = (char *)(uintptr_t)module};
    return p->modules.n ? bsearch(&key, p->modules.p, p->modules.n, sizeof key, compare_modules) : NULL;
}
