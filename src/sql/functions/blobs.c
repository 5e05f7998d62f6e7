/* Bytes that are too long for a column: pictures of videos, and arrays of Java heaps. */
#include "sql/functions/functions.h"

/* The picture of a row of __intrinsic_video_frames, or the setup of its decoder; NULL for a row that is not there or
 * that the limit left without. */
static void video_frame_au_data(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    const struct storage *st = engine_storage(function_engine(ctx));
    int64_t row = sqlite3_value_int64(argv[0]);
    if (function_is_null(argv[0]) || row < 0 || (uint64_t)row >= st->video_data.n || !st->video_data.p[row])
        return;
    struct slice data = strpool_view(&st->strings, st->video_data.p[row]);
    sqlite3_result_blob64(ctx, data.p ? (const void *)data.p : "", data.len, SQLITE_TRANSIENT);
}

/* What array_data_id stands for: the type of the elements, and their bytes in the order of this machine. */
struct heap_array {
    uint8_t type;
    struct slice bytes;
};

/* Types of elements as heap dumps number them, and their sizes. */
enum { BOOLEAN = 4, CHAR, FLOAT, DOUBLE, BYTE, SHORT, INT, LONG };
static const uint8_t sizes[] = {
    [BOOLEAN] = 1, [CHAR] = 2, [FLOAT] = 4, [DOUBLE] = 8, [BYTE] = 1, [SHORT] = 2, [INT] = 4, [LONG] = 8};

/* False for numbers that are not of an array: any string has one. */
static bool find_array(sqlite3_context *ctx, sqlite3_value *id, struct heap_array *a)
{
    const struct storage *st = engine_storage(function_engine(ctx));
    int64_t of = sqlite3_value_int64(id);
    if (function_is_null(id) || of <= 0 || of > UINT32_MAX)
        return false;
    struct slice kept = strpool_view(&st->strings, (strid)of);
    if (kept.len < 2 || kept.p[0] < BOOLEAN || kept.p[0] > LONG || (kept.len - 1) % sizes[kept.p[0]])
        return false;
    *a = (struct heap_array){kept.p[0], slice_of(kept.p + 1, kept.len - 1)};
    return true;
}

static void heap_graph_array(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct heap_array a;
    (void)argc;
    if (find_array(ctx, argv[0], &a))
        sqlite3_result_blob64(ctx, a.bytes.p, a.bytes.len, SQLITE_TRANSIENT);
}

static void append_real(sqlite3_str *out, int digits, double v)
{
    if (v != v || v - v != 0) /* JSON has no such numbers */
        sqlite3_str_appendall(out, "null");
    else
        sqlite3_str_appendf(out, "%!.*g", digits, v);
}

static void append_element(sqlite3_str *out, uint8_t type, const uint8_t *p)
{
    enum { FLOAT_DIGITS = 9, DOUBLE_DIGITS = 17 };
    union {
        int8_t i8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } v;
    memcpy(&v, p, sizes[type]);
    if (type == BOOLEAN)
        sqlite3_str_appendall(out, v.i8 ? "true" : "false");
    else if (type == FLOAT)
        append_real(out, FLOAT_DIGITS, (double)v.f32);
    else if (type == DOUBLE)
        append_real(out, DOUBLE_DIGITS, v.f64);
    else if (type == LONG) /* a text: readers of JSON keep 53 bits of a number */
        sqlite3_str_appendf(out, "\"%lld\"", (long long)v.i64);
    else
        sqlite3_str_appendf(out, "%d", type == CHAR ? v.u16 : type == SHORT ? v.i16 : type == BYTE ? v.i8 : v.i32);
}

static void heap_graph_array_json(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct heap_array a;
    (void)argc;
    if (!find_array(ctx, argv[0], &a))
        return;
    sqlite3_str *out = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    for (size_t i = 0; i < a.bytes.len; i += sizes[a.type]) {
        sqlite3_str_appendchar(out, 1, i ? ',' : '[');
        append_element(out, a.type, a.bytes.p + i);
    }
    sqlite3_str_appendchar(out, 1, ']');
    if (sqlite3_str_errcode(out) != SQLITE_OK)
        sqlite3_result_error_code(ctx, sqlite3_str_errcode(out));
    else
        sqlite3_result_text(ctx, sqlite3_str_value(out), sqlite3_str_length(out), SQLITE_TRANSIENT);
    sqlite3_free(sqlite3_str_finish(out));
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_video_frame_au_data", .n_args = 1, .scalar = video_frame_au_data},
    {.name = "__intrinsic_heap_graph_array", .n_args = 1, .scalar = heap_graph_array},
    {.name = "__intrinsic_heap_graph_array_json", .n_args = 1, .scalar = heap_graph_array_json},
};

FUNCTION_ROWS(blobs, rows);
