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

/* Heap graphs that we import hold no contents of arrays: array_data_id is NULL in all their rows, and so is what it
 * stands for. */
static void heap_graph_array(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_null(ctx);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_video_frame_au_data", .n_args = 1, .scalar = video_frame_au_data},
    {.name = "__intrinsic_heap_graph_array", .n_args = 1, .scalar = heap_graph_array},
    {.name = "__intrinsic_heap_graph_array_json", .n_args = 1, .scalar = heap_graph_array},
};

FUNCTION_ROWS(blobs, rows);
