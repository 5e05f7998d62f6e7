/* Table functions about Android's window system: all fields of its messages, with those that are not set; and the way
 * from the root of the layers down to each. */
#include "sql/operators/rows.h"
#include "sql/operators/table_functions.h"

#include "base/hash.h"
#include "base/u64map.h"

/* --- __intrinsic_winscope_proto_to_args_with_defaults(table) ------------------------------------------------------ */

static const struct column_def args_columns[] = {
    {"table_name", COL_STR, 0, "Table that was asked for."},
    {"base64_proto_id", COL_U32, 0, "Number of the message, as its table has it."},
    {"flat_key", COL_STR, 0, ""},
    {"key", COL_STR, 0, ""},
    {"int_value", COL_I64, COL_NULLABLE, ""},
    {"string_value", COL_STR, COL_NULLABLE, ""},
    {"real_value", COL_F64, COL_NULLABLE, ""},
    {"value_type", COL_STR, 0, ""},
};
static const struct table_def args_def = {"", args_columns, sizeof args_columns / sizeof *args_columns, ""};

static const char *const type_texts[] = {
#define X(name, text, column) text,
    ARG_TYPES(X)
#undef X
};

/* The table with messages of that name, with or without "__intrinsic_". */
static const struct table *table_named(const struct storage *st, const char *name, uint32_t *proto_column)
{
    static const char prefix[] = "__intrinsic_";
    for (uint32_t i = 0; i < T_COUNT; i++) {
        const struct table_def *d = st->t[i].def;
        const char *own = d->name;
        if (strcmp(own, name) != 0 &&
            (strncmp(own, prefix, sizeof prefix - 1) != 0 || strcmp(own + sizeof prefix - 1, name) != 0))
            continue;
        for (uint32_t c = 0; c < d->n_columns; c++)
            if (strcmp(d->columns[c].name, "base64_proto_id") == 0) {
                *proto_column = c;
                return &st->t[i];
            }
    }
    return NULL;
}

struct expansion {
    struct storage *st;
    struct table *out;
    strid table;          /* its name */
    struct u64map shared; /* transition and key -> row + 1: messages of one transition have one row for each key */
    struct arg_list set, all;
};

/* Writes a row, new or in the place of `old` (its number + 1, 0: none). */
static int put_arg(struct expansion *x, uint32_t id, const struct arg *a, uint64_t old)
{
    strid type = strpool_intern_str(&x->st->strings, type_texts[a->type]);
    bool is_text = a->type == ARG_STRING || a->type == ARG_JSON, is_real = a->type == ARG_REAL;
    int64_t words[] = {x->table,
                       id,
                       a->flat_key,
                       a->key,
                       is_text || is_real || a->type == ARG_NULL ? COL_NULL : a->word,
                       is_text ? a->word : 0,
                       is_real ? a->word : COL_NULL_F64,
                       type};
    if (!old)
        return table_append(x->out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
    for (uint32_t c = 0; c < sizeof words / sizeof *words; c++)
        table_set(x->out, c, (uint32_t)old - 1, words[c]);
    return x->out->failed ? -MRD_ENOMEM : 0;
}

static bool has_key(const struct arg_list *l, strid key)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->p[i].key == key)
            return true;
    return false;
}

/* A field of a message of a transition: what is set takes the place of what a message before said of it, a default does
 * not. */
static int share_arg(struct expansion *x, uint32_t id, const struct arg *a, int64_t group)
{
    bool added = false;
    uint64_t *row = u64map_put(&x->shared, hash_keyed(hash_secret(), (uint64_t)group, a->key), &added);
    if (!row)
        return -MRD_ENOMEM;
    if (added)
        *row = (uint64_t)x->out->n_rows + 1;
    else if (!has_key(&x->set, a->key))
        return 0;
    return put_arg(x, id, a, added ? 0 : *row);
}

/* The fields of one message. `group`: the transition that it speaks of, COL_NULL for none. */
static int expand(struct expansion *x, uint32_t id, int64_t group)
{
    int rc = 0;
    argset set = {id + 1};
    x->all.n = x->set.n = 0;
    args_values_by(&x->st->args, ARGS_WITH_DEFAULTS, set, &x->all);
    if (group != COL_NULL)
        args_values(&x->st->args, set, &x->set);
    for (size_t i = 0; i < x->all.n && rc == 0; i++)
        rc = group != COL_NULL ? share_arg(x, id, &x->all.p[i], group) : put_arg(x, id, &x->all.p[i], 0);
    return rc;
}

static int proto_to_args(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const char *name = (const char *)sqlite3_value_text(args[0]);
    uint32_t column = 0;
    struct expansion x = {.st = engine_storage(e), .out = out};
    const struct table *t = name ? table_named(x.st, name, &column) : NULL;
    if (!t)
        return error_set(err, -MRD_ESQL, "no table of messages is called '%s': use a name as surfaceflinger_layer",
                         name ? name : "NULL");
    x.table = strpool_intern_str(&x.st->strings, name);
    bool grouped = t == &x.st->t[T_window_manager_shell_transition_protos];
    int rc = 0;
    for (uint32_t row = 0; row < t->n_rows && rc == 0; row++) {
        int64_t id = table_get(t, column, row);
        int64_t group = grouped ? table_get(t, window_manager_shell_transition_protos_c_transition_id, row) : COL_NULL;
        if (id != COL_NULL && !stop_asked(engine_stop(e)))
            rc = expand(&x, (uint32_t)id, group);
    }
    u64map_free(&x.shared);
    arg_list_free(&x.set);
    arg_list_free(&x.all);
    return rc;
}

/* --- __intrinsic_winscope_surfaceflinger_hierarchy_path() --------------------------------------------------------- */

static const struct column_def path_columns[] = {
    {"snapshot_id", COL_U32, 0, "Row of surfaceflinger_layers_snapshot."},
    {"layer_id", COL_U32, 0, "Number of the layer."},
    {"ancestor_id", COL_U32, 0, "Number of a layer on the way to it, from the root down to itself."},
};
static const struct table_def path_def = {"", path_columns, 3, ""};

enum { MAX_PATH = 512 };

/* The layers of one snapshot: rows from..to. */
static int append_paths(const struct table *t, uint32_t from, uint32_t to, struct table *out)
{
    struct u64map parents = {0};
    uint32_t path[MAX_PATH];
    int rc = 0;
    for (uint32_t row = from; row < to && rc == 0; row++) {
        int64_t id = table_get(t, surfaceflinger_layer_c_layer_id, row);
        if (id != COL_NULL && !u64map_set(&parents, (uint64_t)id, row))
            rc = -MRD_ENOMEM;
    }
    for (uint32_t row = from; row < to && rc == 0; row++) {
        int64_t id = table_get(t, surfaceflinger_layer_c_layer_id, row);
        if (id == COL_NULL)
            continue;
        uint32_t n = 0;
        for (int64_t at = id; n < MAX_PATH;) {
            path[n++] = (uint32_t)at;
            const uint64_t *known = u64map_get(&parents, (uint64_t)at);
            int64_t parent = known ? table_get(t, surfaceflinger_layer_c_parent, (uint32_t)*known) : COL_NULL;
            if (parent == COL_NULL || !u64map_get(&parents, (uint64_t)parent))
                break;
            at = parent;
        }
        while (n-- > 0 && rc == 0) {
            int64_t words[] = {table_get(t, surfaceflinger_layer_c_snapshot_id, row), (uint32_t)id, path[n]};
            rc = table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
        }
    }
    u64map_free(&parents);
    return rc;
}

static int hierarchy_path(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct table *t = &engine_storage(e)->t[T_surfaceflinger_layer];
    int rc = 0;
    (void)args;
    (void)err;
    for (uint32_t from = 0, to; from < t->n_rows && rc == 0 && !stop_asked(engine_stop(e)); from = to) {
        int64_t snapshot = table_get(t, surfaceflinger_layer_c_snapshot_id, from);
        for (to = from + 1; to < t->n_rows && table_get(t, surfaceflinger_layer_c_snapshot_id, to) == snapshot; to++)
            ;
        rc = append_paths(t, from, to, out);
    }
    return rc;
}

const struct engine_table_function winscope_table_functions[] = {
    {"__intrinsic_winscope_proto_to_args_with_defaults", &args_def, 1, ROWS_BOTH, proto_to_args},
    {"__intrinsic_winscope_surfaceflinger_hierarchy_path", &path_def, 0, ROWS_BOTH, hierarchy_path},
};
const size_t winscope_table_functions_n = sizeof winscope_table_functions / sizeof *winscope_table_functions;
