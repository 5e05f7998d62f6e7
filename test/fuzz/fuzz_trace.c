/* The trace reader: any bytes must load, or fail with an error, and leave tables that can be asked. */
#include "importer/importer.h"
#include "meridian/tp.h"

#include "fuzz.h"

#include <stdlib.h>

static void ask(struct tp *tp, const char *sql)
{
    struct tp_result *r;
    if (tp_query(tp, sql, &r) != 0)
        return;
    while (tp_step(r) == 1)
        for (int c = 0; c < tp_columns(r); c++)
            if (tp_column_type(r, c) == TP_TEXT)
                tp_text(r, c, NULL);
    tp_result_close(r);
}

/* The import alone, and all that it has stored: tens of times as fast as with an engine. */
static void import(const uint8_t *data, size_t size, bool full_sort)
{
    struct import_options options = {
        .full_sort = full_sort, .ignore_ftrace_parse_errors = true, .analyze_proto_content = full_sort};
    struct storage st;
    struct importer *im;
    struct error err = {0};
    if (storage_init(&st) != 0)
        return;
    if (importer_open(&im, &st, &options, &err) == 0) {
        importer_feed(im, data, size, &err);
        importer_finish(im, &err);
        for (int t = 0; t < T_COUNT; t++)
            for (uint32_t r = 0; r < st.t[t].n_rows && r < 100; r++)
                for (uint32_t c = 0; c < table_defs[t].n_columns; c++)
                    if (table_defs[t].columns[c].type == COL_STR)
                        strpool_view(&st.strings, (strid)table_get(&st.t[t], c, r));
        importer_close(im);
    }
    storage_free(&st);
}

static bool is_asked(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 16777619u;
    return hash >> 16 & 1 && hash >> 17 & 1 && hash >> 18 & 1 && hash >> 19 & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const questions[] = {
        "select count(*), min(ts), max(ts) from ftrace_event",
        "select sum(dur) from sched",
        "select count(*) from thread_state t join thread using (utid) left join process using (upid)",
        "select * from slice limit 50",
        "select * from counter limit 50",
        "select extract_arg(arg_set_id, 'next_comm') from ftrace_event limit 50",
        "select * from args limit 200",
        "select * from stats where value != 0",
        "select * from metadata",
    };
    /* One bit of the input chooses the sorter, so that both are reached. */
    struct tp_config config = {.full_sort = size > 0 && data[size - 1] & 1, .ignore_ftrace_parse_errors = true};
    if (!is_asked(data, size)) {
        import(data, size, config.full_sort);
        return 0;
    }
    struct tp *tp;
    if (tp_open(&tp, &config) == 0) {
        tp_feed(tp, data, size);
        tp_finish(tp); /* also after a failure: what was before it is there */
        for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
            ask(tp, questions[i]);
    }
    tp_close(tp);
    return 0;
}
