/* The SQL modules that INCLUDE PERFETTO MODULE finds: packages of texts, and what became of each.
 *
 * The standard library is built in; users add packages of their own or put theirs in its place. A module runs once for
 * a database; one that failed stays failed and tells why. */
#ifndef MERIDIAN_SQL_DIALECT_MODULE_H
#define MERIDIAN_SQL_DIALECT_MODULE_H

#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

enum module_state { MODULE_NEW, MODULE_RUNNING, MODULE_DONE, MODULE_FAILED };

struct sql_module {
    char *name;       /* "linux.cpu.frequency" */
    const char *text; /* NUL-terminated */
    size_t len;
    char *owned;  /* text, when it is ours to free */
    char *reason; /* of MODULE_FAILED */
    uint8_t state;
};

struct sql_package {
    char *name; /* may have dots */
    bool builtin;
    VEC(struct sql_module)
    modules; /* sorted by name */
};

struct module_registry {
    VEC(struct sql_package)
    packages;
};

/* One text of a package to be added; `name` is the whole module name. */
struct module_text {
    const char *name;
    struct slice text;
};

/* The built-in library. */
int module_registry_init(struct module_registry *r, struct error *err);
void module_registry_free(struct module_registry *r);

/* Adds a package, texts copied. A name that is a prefix of another package's (or the other way round, by whole parts)
 * clashes: -MRD_EEXISTS, unless `override`, which replaces those. Every module's name must begin with the package's. */
int module_registry_add(struct module_registry *r, const char *package, const struct module_text *texts, size_t n,
                        bool override, struct error *err);

/* All .sql files below `dir`, as package `name` (NULL: the directory's own name). */
int module_registry_add_dir(struct module_registry *r, const char *dir, const char *name, bool override,
                            struct error *err);

/* Puts the packages found in `dir` (one directory each) in the place of the whole built-in library, except the prelude,
 * which speaks of our own tables. */
int module_registry_override_stdlib(struct module_registry *r, const char *dir, struct error *err);

/* The package whose name is the longest prefix of `module`, or NULL. */
struct sql_package *module_registry_package(const struct module_registry *r, const char *module);
struct sql_module *sql_package_find(const struct sql_package *p, const char *module);

#endif
