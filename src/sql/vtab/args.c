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

static bool is_asked(const struct arg *a, const struct args_part *part)
{
    return part->column < 0 || part->key == (part->column == args_c_key ? a->key : a->flat_key);
}

static int append_set(const struct storage *st, argset set, const struct type_ids *types, const struct args_part *part,
                      struct arg_list *scratch, struct table *out)
{
    scratch->n = 0;
    if (part->column < 0)
        args_values(&st->args, set, scratch);
    else
        args_values_of(&st->args, set, part->key, scratch);
    for (size_t i = 0; i < scratch->n; i++) {
        const struct arg *a = &scratch->p[i];
        if (!is_asked(a, part))
            continue;
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

static const struct args_part whole = {.column = -1};

int args_one(struct engine *e, argset set, struct arg_list *scratch, struct table *out)
{
    struct type_ids types = intern_types(e->storage);
    return append_set(e->storage, set, &types, &whole, scratch, out);
}

static int append_sets(struct engine *e, const struct args_part *part, struct table *out)
{
    struct arg_list scratch = {0};
    struct type_ids types = intern_types(e->storage);
    int rc = SQLITE_OK;
    for (uint64_t id = 0; rc == SQLITE_OK && id < args_count(&e->storage->args); id++) {
        if (part->sets && !(part->sets[id / 64] >> id % 64)) { /* none of those that are left in the word */
            id |= 63;
            continue;
        }
        if (part->sets && !(part->sets[id / 64] >> id % 64 & 1))
            continue;
        rc = engine_is_interrupted(e) ? SQLITE_INTERRUPT
                                      : append_set(e->storage, (argset){(uint32_t)id + 1}, &types, part, &scratch, out);
    }
    arg_list_free(&scratch);
    return rc;
}

int args_all(struct engine *e)
{
    if (e->all_args_ready)
        return SQLITE_OK;
    if (!e->all_args.def && table_init(&e->all_args, &table_defs[T_args]) != 0)
        return SQLITE_NOMEM;
    table_clear(&e->all_args);
    int rc = append_sets(e, &whole, &e->all_args);
    e->all_args_ready = rc == SQLITE_OK;
    return rc;
}

int args_some(struct engine *e, const struct args_part *part, struct table *out)
{
    if (table_init(out, &table_defs[T_args]) != 0)
        return SQLITE_NOMEM;
    int rc = append_sets(e, part, out);
    table_finalize(out);
    return rc;
}

enum { VALUES_OF_SET = 3 };

const struct table *args_outline(struct engine *e)
{
    struct table *t = &e->args_outline;
    if (!t->def && table_init(t, &table_defs[T_args]) != 0)
        return NULL;
    uint64_t n = (uint64_t)args_count(&e->storage->args) * VALUES_OF_SET;
    t->n_rows = n < UINT32_MAX / 2 ? (uint32_t)n : UINT32_MAX / 2;
    t->final = true; /* its columns are empty, and must not be taken for sorted */
    for (uint32_t i = 0; i < t->def->n_columns; i++)
        t->columns[i].has_null = true;
    return t;
}
