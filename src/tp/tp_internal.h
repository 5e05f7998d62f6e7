/* What the files of libmeridian share: the handle behind meridian/tp.h. */
#ifndef MERIDIAN_TP_INTERNAL_H
#define MERIDIAN_TP_INTERNAL_H

#include "base/error.h"
#include "base/vec.h"
#include "importer/importer.h"
#include "meridian/tp.h"
#include "sql/dialect/dialect.h"
#include "sql/engine.h"
#include "storage/storage.h"

/* SQL modules to be added to each engine that is opened. */
struct tp_package {
    char *dir;  /* NULL: `texts` */
    char *name; /* NULL: the directory's */
    struct module_text *texts;
    size_t n_texts;
    bool replace;
    bool stdlib; /* dir takes the place of the standard library */
};

struct tp {
    struct tp_config config;
    struct storage storage;
    struct importer *importer; /* open as long as the handle: it decodes args on demand */
    struct engine *engine;
    struct error err;
    bool engine_failed; /* the engine holds the whole text of the failure */
    bool finished;
    uint64_t bytes;
    VEC(struct tp_stat)
    stats; /* made by the first tp_stats_next() */
    bool stats_made;
    VEC(struct tp_package)
    packages;
};

/* Remembers the failure in tp->err (or clears it when rc is 0) and returns the public code. */
int tp_done(struct tp *tp, int rc);

/* SQL of users may open files only when the configuration allows it. */
void tp_authorize(struct tp *tp);

/* Adds every package to a new engine. */
int tp_apply_packages(struct tp *tp);
void tp_free_packages(struct tp *tp);

#endif
