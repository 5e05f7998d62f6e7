/* Functions that read the storage: extract_arg, extract_metadata and its kin, trace_start/end/dur.
 *
 * extract_arg keeps what it found by (arg set, key): events share sets, and a query asks for the same few keys of all
 * of them. Per key there is one array over the set ids, filled as sets are met. */
#include "sql/engine_private.h"
#include "sql/extensions.h"

#include <string.h>

/* ---- extract_arg ---- */

enum { EXTRACT_KEYS = 8, EXTRACT_MAX_SETS = 64 << 20 };

struct extract_key {
    strid key;
    uint8_t *state; /* by set */
    int64_t *words;
    uint32_t n;
    uint32_t used; /* for choosing which to give up */
};

struct extract_cache {
    struct extract_key keys[EXTRACT_KEYS];
    uint32_t clock;
    struct arg_list list;
};

void extract_cache_free(struct engine *e)
{
    if (!e->extract)
        return;
    for (int i = 0; i < EXTRACT_KEYS; i++) {
        mem_free(e->extract->keys[i].state);
        mem_free(e->extract->keys[i].words);
    }
    arg_list_free(&e->extract->list);
    mem_free(e->extract);
    e->extract = NULL;
}

static struct extract_key *cache_of(struct engine *e, strid key)
{
    if (!e->extract && !(e->extract = mem_zalloc(sizeof *e->extract)))
        return NULL;
    struct extract_key *oldest = &e->extract->keys[0];
    for (int i = 0; i < EXTRACT_KEYS; i++) {
        struct extract_key *k = &e->extract->keys[i];
        if (k->key == key) {
            k->used = ++e->extract->clock;
            return k;
        }
        if (k->used < oldest->used)
            oldest = k;
    }
    oldest->key = key;
    oldest->used = ++e->extract->clock;
    if (oldest->state)
        memset(oldest->state, FOUND_UNKNOWN, oldest->n);
    return oldest;
}

static bool cache_room(struct extract_key *k, uint32_t n_sets)
{
    if (n_sets <= k->n)
        return true;
    uint8_t *state = n_sets < EXTRACT_MAX_SETS ? mem_realloc(k->state, n_sets) : NULL;
    if (!state)
        return false;
    k->state = state;
    int64_t *words = mem_realloc(k->words, n_sets * sizeof *words);
    if (!words)
        return false;
    k->words = words;
    memset(state + k->n, FOUND_UNKNOWN, n_sets - k->n);
    k->n = n_sets;
    return true;
}

static enum arg_found find_arg(struct engine *e, argset set, strid key, int64_t *word)
{
    struct arg_list *list = &e->extract->list;
    list->n = 0;
    args_values_of(&e->storage->args, set, key, list);
    for (size_t i = 0; i < list->n; i++) {
        const struct arg *a = &list->p[i];
        if (a->key != key)
            continue;
        *word = a->word;
        return a->type == ARG_STRING || a->type == ARG_JSON ? (a->word ? FOUND_TEXT : FOUND_NOTHING)
               : a->type == ARG_REAL                        ? FOUND_REAL
               : a->type == ARG_NULL                        ? FOUND_NOTHING
                                                            : FOUND_INTEGER;
    }
    return FOUND_NOTHING;
}

static void result_string(struct engine *e, sqlite3_context *ctx, strid id)
{
    struct slice s = strpool_view(&e->storage->strings, id);
    sqlite3_result_text(ctx, (const char *)s.p, (int)s.len, SQLITE_STATIC);
}

enum arg_found engine_find_arg(struct engine *e, int64_t id, strid key, int64_t *word)
{
    struct extract_key *k = cache_of(e, key);
    if (!k)
        return FOUND_NO_MEMORY;
    uint32_t n_sets = args_count(&e->storage->args);
    argset set = args_of_cell(&e->storage->args, id);
    if (argset_is_none(set) || set.plus_one > n_sets)
        return FOUND_NOTHING;
    if (!cache_room(k, n_sets))
        return find_arg(e, set, key, word);
    uint32_t at = set.plus_one - 1;
    if (k->state[at] == FOUND_UNKNOWN)
        k->state[at] = (uint8_t)find_arg(e, set, key, &k->words[at]);
    *word = k->words[at];
    return (enum arg_found)k->state[at];
}

static void extract_arg(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct engine *e = function_engine(ctx);
    (void)argc;
    int type = sqlite3_value_type(argv[0]);
    if (type == SQLITE_NULL)
        return;
    if (type != SQLITE_INTEGER) {
        sqlite3_result_error(ctx, "EXTRACT_ARG: 1st argument should be arg set id", -1);
        return;
    }
    strid *known_key = sqlite3_get_auxdata(ctx, 1); /* a constant key is looked up once */
    strid key = 0;
    if (known_key) {
        key = *known_key;
    } else {
        if (sqlite3_value_type(argv[1]) != SQLITE_TEXT) {
            sqlite3_result_error(ctx, "EXTRACT_ARG: 2nd argument should be key", -1);
            return;
        }
        const char *text = (const char *)sqlite3_value_text(argv[1]);
        key =
            strpool_intern(&e->storage->strings, text, (size_t)sqlite3_value_bytes(argv[1])); /* decoding may add it */
        known_key = mem_alloc(sizeof *known_key);
        if (known_key) {
            *known_key = key;
            sqlite3_set_auxdata(ctx, 1, known_key, mem_free);
        }
    }
    int64_t word = 0;
    enum arg_found found = key ? engine_find_arg(e, sqlite3_value_int64(argv[0]), key, &word) : FOUND_NO_MEMORY;
    if (found == FOUND_NO_MEMORY)
        sqlite3_result_error_nomem(ctx);
    if (found == FOUND_INTEGER)
        sqlite3_result_int64(ctx, word);
    else if (found == FOUND_TEXT)
        result_string(e, ctx, (strid)word);
    else if (found == FOUND_REAL)
        sqlite3_result_double(ctx, column_f64(word));
}

/* ---- metadata ---- */

/* The value of the first row with that name, and machine and trace where they are given (COL_NULL: any). */
static void metadata_value(sqlite3_context *ctx, sqlite3_value *name, bool by_machine, int64_t machine, bool by_trace,
                           int64_t trace)
{
    struct engine *e = function_engine(ctx);
    struct storage *st = e->storage;
    const char *text = (const char *)sqlite3_value_text(name);
    strid id = text ? strpool_find(&st->strings, text, (size_t)sqlite3_value_bytes(name)) : 0;
    for (uint32_t row = 0; id && row < st->t[T_metadata].n_rows; row++) {
        if (ROW_GET(st, metadata, name, row) != id ||
            (by_machine && ROW_GET(st, metadata, machine_id, row) != machine) ||
            (by_trace && ROW_GET(st, metadata, trace_id, row) != trace))
            continue;
        strid s = (strid)ROW_GET(st, metadata, str_value, row);
        int64_t i = ROW_GET(st, metadata, int_value, row);
        if (s)
            result_string(e, ctx, s);
        else if (i != COL_NULL)
            sqlite3_result_int64(ctx, i);
        return;
    }
}

static bool any_null(int argc, sqlite3_value **argv)
{
    for (int i = 0; i < argc; i++)
        if (sqlite3_value_type(argv[i]) == SQLITE_NULL)
            return true;
    return false;
}

static void extract_metadata(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (!any_null(argc, argv))
        metadata_value(ctx, argv[0], false, 0, false, 0);
}

static void extract_metadata_for_machine(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (!any_null(argc, argv))
        metadata_value(ctx, argv[1], true, sqlite3_value_int64(argv[0]), false, 0);
}

static void extract_metadata_for_trace(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (!any_null(argc, argv))
        metadata_value(ctx, argv[1], false, 0, true, sqlite3_value_int64(argv[0]));
}

static void extract_exact_metadata(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (!any_null(argc, argv))
        metadata_value(ctx, argv[2], true, sqlite3_value_int64(argv[0]), true, sqlite3_value_int64(argv[1]));
}

/* ---- trace bounds ---- */

static void trace_start(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int64(ctx, function_engine(ctx)->storage->trace_start_ns);
}

static void trace_end(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int64(ctx, function_engine(ctx)->storage->trace_end_ns);
}

static void trace_dur(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct storage *st = function_engine(ctx)->storage;
    (void)argc;
    (void)argv;
    sqlite3_result_int64(ctx, (int64_t)((uint64_t)st->trace_end_ns - (uint64_t)st->trace_start_ns));
}

static const struct engine_function functions[] = {
    {.name = "extract_arg", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = extract_arg},
    {.name = "extract_metadata", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = extract_metadata},
    {.name = "extract_metadata_for_machine",
     .n_args = 2,
     .flags = SQLITE_DETERMINISTIC,
     .scalar = extract_metadata_for_machine},
    {.name = "extract_metadata_for_trace",
     .n_args = 2,
     .flags = SQLITE_DETERMINISTIC,
     .scalar = extract_metadata_for_trace},
    {.name = "extract_exact_metadata", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .scalar = extract_exact_metadata},
    {.name = "trace_start", .n_args = 0, .flags = SQLITE_DETERMINISTIC, .scalar = trace_start},
    {.name = "trace_end", .n_args = 0, .flags = SQLITE_DETERMINISTIC, .scalar = trace_end},
    {.name = "trace_dur", .n_args = 0, .flags = SQLITE_DETERMINISTIC, .scalar = trace_dur},
};

int functions_storage_attach(struct engine *e, struct error *err)
{
    return engine_register_functions(e, functions, sizeof functions / sizeof *functions, err);
}
