/* What the files of libmeridian share: the handle behind meridian/tp.h. */
#ifndef MERIDIAN_API_TP_INTERNAL_H
#define MERIDIAN_API_TP_INTERNAL_H

#include "base/error.h"
#include "base/vec.h"
#include "importer/importer.h"
#include "meridian/tp.h"
#include "sql/dialect/dialect.h"
#include "sql/engine.h"
#include "storage/storage.h"
#include "summary/run/runner.h"

/* SQL modules to be added to each engine that is opened. */
struct tp_package {
    char *dir;  /* NULL: `texts` */
    char *name; /* NULL: the directory's */
    struct module_text *texts;
    size_t n_texts;
    bool replace;
    bool stdlib; /* dir takes the place of the standard library */
};

struct meta_record {
    const char *name;
    const char *key; /* of text */
    char *text;      /* owned; may be NULL */
    int64_t start_ns;
    int64_t dur_ns;
};

struct metatrace {
    unsigned categories;
    size_t capacity;
    VEC(struct meta_record)
    records;
    size_t next; /* the oldest, once all are in use */
    bool overran;
};

/* One set of tables over the trace. */
struct tp_view {
    struct engine *engine;      /* while another view is in use */
    struct query_runner runner; /* of summaries, on its engine */
    struct tp_view *next;
};

struct tp {
    struct tp_config config;
    struct storage storage;
    struct cache *cache;       /* of snapshots; NULL: none, or this load is not for it */
    struct importer *importer; /* open as long as the handle: it decodes args on demand */
    struct engine *engine;     /* of the view in use */
    struct engine_function clock_functions[3];
    struct tp_view first;
    struct tp_view *view;    /* in use */
    atomic_bool interrupted; /* here and not with an engine: it may be set while one takes the place of another */
    struct remote *remote;   /* instead of all that: a server has the trace */
    struct error err;
    bool engine_failed; /* the engine holds the whole text of the failure */
    bool tables_only;   /* tp_finish_tables() */
    bool finished;
    bool asked_for_code; /* what is loaded depends on files beside the trace: it is not for the cache */
    uint64_t bytes;
    VEC(struct tp_stat)
    stats; /* made by the first tp_stats_next() */
    bool stats_made;
    VEC(struct tp_package)
    packages;
    struct metatrace meta;
};

/* Remembers the failure in tp->err (or clears it when rc is 0) and returns the public code. */
int tp_done(struct tp *tp, int rc);

/* The same for a failure that the engine (or the server) may know more about than fits an error value. */
int tp_engine_done(struct tp *tp, int rc);

/* Begins a call that needs a loaded trace of our own: negative when there is none. */
int tp_need_engine(struct tp *tp);

/* Registers clock_error_ns() and its like with the engine. */
int tp_clock_functions(struct tp *tp);

/* Adds every package to a new engine. What cannot be added is forgotten: the first error is told, the rest is there. */
int tp_apply_packages(struct tp *tp);
void tp_free_packages(struct tp *tp);

/* Around what is to be recorded: the time it starts (0 when the category is not wanted), and its record. */
int64_t tp_meta_now(const struct tp *tp, unsigned category);
void tp_meta_record(struct tp *tp, unsigned category, const char *name, int64_t start_ns, const char *key,
                    const char *text, size_t len);

#endif
