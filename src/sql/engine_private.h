/* What the parts of src/sql share of an engine. */
#ifndef MERIDIAN_SQL_ENGINE_PRIVATE_H
#define MERIDIAN_SQL_ENGINE_PRIVATE_H

#include "base/vec.h"
#include "sql/engine.h"

#include <stdatomic.h>

struct vtab;
struct vtab_source;

/* A runtime table on its way into CREATE VIRTUAL TABLE. */
struct engine_pending {
    const char *name;
    struct runtime_table *t;
};

struct engine_known_table { /* what engine_find_table() answers from */
    char *name;
    const struct table *table;
    struct vtab *vtab;
};

struct engine_runtime { /* a table that CREATE PERFETTO TABLE made, from then until DROP TABLE */
    char *name;
    struct vtab_source *source;
};

/* A table that an operator computes, which plans may read as columns instead of row by row. */
struct engine_batches {
    const char *name; /* while it is connected */
    uint64_t serial;  /* given by engine_add_batches() */
    void *ctx;
    uint32_t n_columns;
    /* Name and type of a column; false: it has no type that is known. */
    bool (*column)(void *ctx, uint32_t i, const char **name, enum col_type *type);
    /* All rows in the order of the table, `n` at a time, words by column; those not wanted are NULL. 1: done; 0: not
     * understood, or a push has said false. Nothing is said of errors: the table will, when SQLite reads it. */
    int (*rows)(void *ctx, const bool *wanted, bool (*push)(void *to, const int64_t *const *words, uint32_t n),
                void *to);
};

struct engine_compiled { /* the statement that SQLite is preparing */
    struct slice text;   /* p NULL: it is not known */
    bool outer, looked;  /* has it an outer join? Told once it has been looked at */
};

struct engine {
    sqlite3 *db;
    struct storage *storage;
    struct engine_dialect dialect;
    struct engine_pending pending;
    VEC(struct engine_known_table)
    known;
    VEC(struct engine_batches)
    batches;
    uint64_t last_serial;
    VEC(struct engine_runtime)
    runtime;
    VEC(const struct engine_function *)
    functions;
    atomic_bool own_interrupt;
    atomic_bool *interrupted; /* that one, or the owner's */
    uint32_t generation;      /* grows when the storage has changed behind the indexes */
    bool loaded;              /* the views of a complete trace are there */
    int error_offset;
    bool files_allowed; /* engine_allow_files() */
    char refused[160];  /* why the authorizer refused the statement last */
    enum {
        COMPILE_NOT_REFUSED,
        COMPILE_STOPPED,
        COMPILE_TOO_LARGE,
        COMPILE_TOO_LONG
    } compile_refused;  /* since the statement began */
    int operator_depth; /* operators that run statements, within each other */
    bool operators_too_deep;
    char *error_text;
    bool error_text_lost; /* there was no memory for it */
    VEC(const char *)
    lazy;                  /* names of tables of the prelude that are made when a query names them; their modules' */
    struct table all_args; /* every argument set, decoded; rows appear on first use */
    bool all_args_ready;
    struct table args_outline; /* args_outline() */
    uint64_t args_decoded; /* sets that plans had decoded for themselves: when it is as many as there are, all are */
    struct extract_cache *extract; /* functions/storage.c */
    struct flow_graph *flows;      /* flow_graph.c */
    struct query_log *queries;     /* tables/query_log.c; NULL before the first */
    struct schema *schema;         /* planner/schema.c */
    struct outer_views *outer;     /* planner/outer.c */
    struct engine_compiled compiled;
    unsigned functions_made;   /* of those the planner knows: made anew by a statement */
    uint64_t n_functions_made; /* all that statements made, or made anew */
    bool planner_off;
    bool direct;             /* the rows of the statement that is being prepared may come from its plan */
    uint64_t machine_bytes;  /* what this process may have */
    uint64_t plan_max_bytes; /* 0: as the machine has; tests set it */
    bool plan_every_call;    /* of a table function, however long that takes; tests set it */
    uint64_t plan_bytes;     /* that the plan which ran last has asked for, and when it gave up */
    bool plan_gave_up;
    uint64_t plan_text_bytes; /* of texts that all plans together have added to the string pool */
    uint64_t plan_visited;    /* rows of tables that plans have looked at, of all that have run */
    struct query_plan *plan;  /* of plan_statement, the one made last: borrowed while it lives */
    sqlite3_stmt *plan_statement;
};

/* For known tables. */
/* The table of ours that SQLite calls by this name, connected now if need be; args may not be decoded yet. NULL: none.
 * The pointer lasts until a table is connected or taken down. */
const struct engine_known_table *engine_find_known(struct engine *e, const char *name);
/* Is it the name of a table of the storage, of SQL's or of one that is made when it is first named? */
bool engine_makes_table(struct engine *e, const char *name);
bool engine_know(struct engine *e, const char *name, const struct table *t, struct vtab *v);
void engine_forget(struct engine *e, const struct vtab *v);

bool engine_add_batches(struct engine *e, struct engine_batches *b);
void engine_remove_batches(struct engine *e, uint64_t serial);
/* By name (serial 0) or by serial; NULL: none. */
const struct engine_batches *engine_find_batches(const struct engine *e, const char *name, uint64_t serial);

void extract_cache_free(struct engine *e);
void flow_graph_free(struct engine *e);

/* What extract_arg() finds: the word is as in a column of that type. The key must be in the string pool. */
enum arg_found { FOUND_UNKNOWN, FOUND_NOTHING, FOUND_INTEGER, FOUND_TEXT, FOUND_REAL, FOUND_NO_MEMORY };
enum arg_found engine_find_arg(struct engine *e, int64_t id, strid key, int64_t *word);
void query_log_free(struct engine *e);

/* May a condition with this operator (SQLITE_INDEX_CONSTRAINT_…) be one of an outer join that SQLite takes for one of
 * the table alone, in the statement that it is preparing? A virtual table does not take such a condition. True, too,
 * when it cannot be told: the text is not known, it changes rows (triggers are not looked at), a database is attached,
 * there is no memory. planner/outer.h */
bool engine_may_be_misread(struct engine *e, int op);

static inline bool engine_is_interrupted(const struct engine *e)
{
    return atomic_load_explicit(e->interrupted, memory_order_relaxed);
}

#endif
