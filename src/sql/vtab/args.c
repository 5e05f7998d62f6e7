/* Owns rows of `args`: the values of argument sets, decoded into a table. */
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

int args_fill_set(struct storage *st, uint32_t arg_set_id, struct arg_list *scratch, struct table *out)
{
    int type = -1; /* of the value before: neighbours often share theirs, and then its name */
    strid type_name = 0;
    scratch->n = 0;
    args_values(&st->args, arg_set_id, scratch);
    for (size_t i = 0; i < scratch->n; i++) {
        const struct arg *a = &scratch->p[i];
        if (a->type != type) {
            type = a->type;
            type_name = strpool_intern_str(&st->strings, type_names[a->type]);
        }
        int64_t words[args_n_columns] = {
            [args_c_arg_set_id] = arg_set_id, [args_c_flat_key] = a->flat_key,    [args_c_key] = a->key,
            [args_c_int_value] = COL_NULL,    [args_c_real_value] = COL_NULL_F64, [args_c_value_type] = type_name,
        };
        if (a->type != ARG_NULL)
            words[value_columns[a->type]] = a->word;
        if (table_append(out, words) == UINT32_MAX)
            return -MRD_ENOMEM;
    }
    return 0;
}
