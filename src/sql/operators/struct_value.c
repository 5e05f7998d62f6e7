/* __intrinsic_struct(k1, …, kn, v1, …, vn): values by name, as one pointer value of the type "STRUCT". */
#include "sql/operators/rows.h"

#include "base/alloc.h"

struct struct_value {
    int n;
    sqlite3_value *fields[]; /* n names, n values */
};

static void struct_free(void *p)
{
    struct struct_value *s = p;
    for (int i = 0; i < 2 * s->n; i++)
        sqlite3_value_free(s->fields[i]);
    mem_free(s);
}

/* Names are texts, each different from the others. */
static bool check_names(sqlite3_context *ctx, int n, sqlite3_value **names)
{
    for (int i = 0; i < n; i++) {
        if (sqlite3_value_type(names[i]) != SQLITE_TEXT) {
            function_error(ctx, "STRUCT: the name of field %d must be a string", i + 1);
            return false;
        }
        for (int k = 0; k < i; k++)
            if (strcmp((const char *)sqlite3_value_text(names[i]), (const char *)sqlite3_value_text(names[k])) == 0) {
                function_error(ctx, "STRUCT: two fields are named %s", sqlite3_value_text(names[i]));
                return false;
            }
    }
    return true;
}

static void make(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (argc == 0 || argc % 2) {
        function_error(ctx, "STRUCT: expected the names of the fields, then one value for each");
        return;
    }
    if (!check_names(ctx, argc / 2, argv))
        return;
    struct struct_value *s = mem_zalloc(sizeof *s + (size_t)argc * sizeof *s->fields);
    bool whole = s != NULL;
    for (int i = 0; i < argc && whole; i++) {
        s->n = argc / 2;
        s->fields[i] = sqlite3_value_dup(argv[i]);
        whole = s->fields[i] != NULL;
    }
    if (whole) {
        sqlite3_result_pointer(ctx, s, "STRUCT", struct_free);
        return;
    }
    if (s)
        struct_free(s);
    sqlite3_result_error_nomem(ctx);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_struct", .n_args = -1, .takes = "*v", .scalar = make},
};

FUNCTION_ROWS(struct_value, rows);
