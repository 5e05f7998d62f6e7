/* The scalar, aggregate and window functions that PerfettoSQL has and SQLite 3.40 lacks: one table of rows a file,
 * registered together by functions_attach(). */
#ifndef MERIDIAN_SQL_FUNCTIONS_FUNCTIONS_H
#define MERIDIAN_SQL_FUNCTIONS_FUNCTIONS_H

#include "base/json_writer.h"
#include "sql/engine.h"

int functions_attach(struct engine *e, struct error *err);

struct function_rows {
    const struct engine_function *p;
    size_t n;
};

/* X(file): each defines `const struct function_rows file_functions`. */
#define FUNCTION_FILES(X)                                                                                              \
    X(aggregate)                                                                                                       \
    X(args)                                                                                                            \
    X(blobs)                                                                                                           \
    X(clock)                                                                                                           \
    X(encoding)                                                                                                        \
    X(export_json)                                                                                                     \
    X(ftrace_text)                                                                                                     \
    X(json)                                                                                                            \
    X(layout)                                                                                                          \
    X(math)                                                                                                            \
    X(ordered)                                                                                                         \
    X(percentile)                                                                                                      \
    X(pprof)                                                                                                           \
    X(regexp)                                                                                                          \
    X(stacks)                                                                                                          \
    X(text)                                                                                                            \
    X(timediff)

#define X(file) extern const struct function_rows file##_functions;
FUNCTION_FILES(X)
#undef X

#define FUNCTION_ROWS(file, rows) const struct function_rows file##_functions = {rows, sizeof(rows) / sizeof *(rows)}

/* sqlite3_result_error with a format. */
void function_error(sqlite3_context *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The text that `s` has built becomes the result ("" for none), and frees it; an error when it ran out of memory or
 * became too long. */
void function_result_built(sqlite3_context *ctx, sqlite3_str *s);

/* A value as JSON; what is JSON already stays as it is. */
void function_append_json(sqlite3_str *s, sqlite3_value *v);

/* A writer of JSON into a sqlite3_str, which keeps its own errors. */
struct json_writer function_json_writer(sqlite3_str *s);

static inline bool function_is_null(sqlite3_value *v)
{
    return sqlite3_value_type(v) == SQLITE_NULL;
}

/* The text of a value; NULL, of no bytes: of NULL, or no memory to turn it into UTF-8. */
static inline struct slice function_text(sqlite3_value *v)
{
    const void *p = sqlite3_value_text(v);
    return slice_of(p, p ? (size_t)sqlite3_value_bytes(v) : 0);
}

static inline struct slice function_bytes(sqlite3_value *v)
{
    const void *p = sqlite3_value_blob(v);
    return slice_of(p, p ? (size_t)sqlite3_value_bytes(v) : 0);
}

#endif
