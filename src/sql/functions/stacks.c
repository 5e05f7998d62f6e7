/* cat_stacks, stack_from_stack_profile_frame, stack_from_stack_profile_callsite: call stacks as values.
 *
 * Such a value is a message whose field 1 repeats: one entry, {2: a name | 3: callsite | 4: frame | 5: callsite with
 * what kind of code its frames are}. Entries stand from the outermost on. */
#include "sql/functions/stacks.h"

#include "wire/pb_writer.h"

static void return_blob(sqlite3_context *ctx, struct pb_writer *w)
{
    if (w->failed)
        sqlite3_result_error_nomem(ctx);
    else
        sqlite3_result_blob64(ctx, w->n ? w->p : (const void *)"", w->n, SQLITE_TRANSIENT);
    pb_writer_free(w);
}

static void put_entry(struct pb_writer *w, enum stack_entry_kind kind, uint64_t row)
{
    size_t entry = pb_begin(w, STACK_ENTRIES);
    pb_put_varint(w, kind, row);
    pb_end(w, entry);
}

/* The row that an argument names; false when it is NULL or (an error is set) none of `n`. */
static bool row_argument(sqlite3_context *ctx, const char *function, sqlite3_value *v, uint32_t n, uint64_t *row)
{
    if (function_is_null(v))
        return false;
    int64_t id = sqlite3_value_int64(v);
    if (sqlite3_value_type(v) != SQLITE_INTEGER || id < 0 || id >= n) {
        function_error(ctx, "%s: there is no row %s", function, (const char *)sqlite3_value_text(v));
        return false;
    }
    *row = (uint64_t)id;
    return true;
}

static void stack_of_frame(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct storage *st = engine_storage(function_engine(ctx));
    struct pb_writer w = {0};
    uint64_t row;
    (void)argc;
    if (!row_argument(ctx, "STACK_FROM_STACK_PROFILE_FRAME", argv[0], st->t[T_stack_profile_frame].n_rows, &row))
        return;
    put_entry(&w, STACK_FRAME, row);
    return_blob(ctx, &w);
}

static void stack_of_callsite(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const char name[] = "STACK_FROM_STACK_PROFILE_CALLSITE";
    const struct storage *st = engine_storage(function_engine(ctx));
    struct pb_writer w = {0};
    uint64_t row;
    if (argc != 1 && argc != 2) {
        function_error(ctx, "%s: expected a callsite id, then whether to annotate its frames", name);
        return;
    }
    if (!row_argument(ctx, name, argv[0], st->t[T_stack_profile_callsite].n_rows, &row))
        return;
    put_entry(&w, argc == 2 && sqlite3_value_int(argv[1]) ? STACK_ANNOTATED_CALLSITE : STACK_CALLSITE, row);
    return_blob(ctx, &w);
}

/* Stacks one below the other; a text stands for a frame of that name, NULL for nothing. */
static void cat_stacks(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct pb_writer w = {0};
    bool any = false;
    for (int i = 0; i < argc; i++) {
        switch (sqlite3_value_type(argv[i])) {
        case SQLITE_NULL:
            continue;
        case SQLITE_TEXT: {
            struct slice name = function_text(argv[i]);
            size_t entry = pb_begin(&w, STACK_ENTRIES);
            pb_put_bytes(&w, STACK_NAME, name.p, name.len);
            pb_end(&w, entry);
            break;
        }
        case SQLITE_BLOB: {
            struct slice stack = function_bytes(argv[i]);
            pb_put_raw(&w, stack.p, stack.len);
            break;
        }
        default:
            function_error(ctx, "CAT_STACKS: argument %d must be a stack or a string", i + 1);
            pb_writer_free(&w);
            return;
        }
        any = true;
    }
    if (any)
        return_blob(ctx, &w);
    else
        pb_writer_free(&w);
}

static const struct engine_function rows[] = {
    {.name = "stack_from_stack_profile_frame", .n_args = 1, .scalar = stack_of_frame},
    {.name = "stack_from_stack_profile_callsite", .n_args = -1, .takes = "v?v", .scalar = stack_of_callsite},
    {.name = "cat_stacks", .n_args = -1, .takes = "*v", .scalar = cat_stacks},
};

FUNCTION_ROWS(stacks, rows);
