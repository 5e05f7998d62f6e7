/* Makes the rows of `args`: the values of argument sets, decoded into a table. */
#include "sql/engine_private.h"
#include "sql/vtab/vtab.h"

static const char *const type_names[ARG_TYPE_COUNT] = {
#define X(name, text, column) text,
    ARG_TYPES(X)
#undef X
};

/* Which column takes the value. */
static const uint8_t value_columns[ARG_TYPE_COUNT] = {
#define X(name, text, column) args_c_##column,
    ARG_TYPES(X)
#undef X
};

/* The ids of the names of types: one look-up each for a run over many sets. */
struct type_ids {
    strid of[ARG_TYPE_COUNT];
};

static struct type_ids intern_types(struct storage *st)
{
    struct type_ids ids;
    for (int i = 0; i < ARG_TYPE_COUNT; i++)
        ids.of[i] = strpool_intern_str(&st->strings, type_names[i]);
    return ids;
}

static int append_set(const struct storage *st, argset set, const struct type_ids *types, struct arg_list *scratch,
                      struct table *out)
{
    scratch->n = 0;
    args_values(&st->args, set, scratch);
    for (size_t i = 0; i < scratch->n; i++) {
        const struct arg *a = &scratch->p[i];
        int64_t words[args_n_columns] = {
            [args_c_arg_set_id] = args_cell(&st->args, set),
            [args_c_flat_key] = a->flat_key,
            [args_c_key] = a->key,
            [args_c_int_value] = COL_NULL,
            [args_c_real_value] = COL_NULL_F64,
            [args_c_value_type] = types->of[a->type],
        };
        if (a->type != ARG_NULL)
            words[value_columns[a->type]] = a->word;
        if (table_append(out, words) == UINT32_MAX)
            return SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

int args_one(struct engine *e, argset set, struct arg_list *scratch, struct table *out)
{
    struct type_ids types = intern_types(e->storage);
    return append_set(e->storage, set, &types, scratch, out);
}

int args_all(struct engine *e)
{
    if (e->all_args_ready)
        return SQLITE_OK;
    if (!e->all_args.def && table_init(&e->all_args, &table_defs[T_args]) != 0)
        return SQLITE_NOMEM;
    table_clear(&e->all_args);
    struct arg_list scratch = {0};
    struct type_ids types = intern_types(e->storage);
    int rc = SQLITE_OK;
    for (uint32_t id = 0; rc == SQLITE_OK && id < args_count(&e->storage->args); id++)
        rc = engine_is_interrupted(e) ? SQLITE_INTERRUPT
                                      : append_set(e->storage, (argset){id + 1}, &types, &scratch, &e->all_args);
    arg_list_free(&scratch);
    e->all_args_ready = rc == SQLITE_OK;
    return rc;
}
