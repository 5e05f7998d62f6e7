/* SQL over a small recording: any text must give rows or an error. */
#include "kept.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    kept_begin(argc, argv);
    kept_load();
    return 0;
}

/* Runs the statement at *at: false when there is none, or it failed. *changed tells what it may have left behind. */
static bool run_statement(const uint8_t *data, size_t size, size_t *at, bool *changed)
{
    enum { MOST_ROWS = 100 };
    const size_t from = *at;
    struct tp_result *r;
    int rc = tp_query_next(kept, "fuzz", (const char *)data, size, at, &r);
    if (rc != 1) {
        *changed |= rc < 0 && kept_half_changes(data + from, size - from);
        return false;
    }
    *changed |= kept_changes(data + from, *at - from);
    for (int rows = 0; rows < MOST_ROWS && tp_step(r) == 1; rows++)
        for (int c = 0; c < tp_columns(r); c++)
            tp_text(r, c, NULL);
    tp_result_close(r);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_STATEMENTS = 50, LIMIT_MS = 20 };
    size_t at = 0;
    bool changed = false;
    kept_limit_ms(LIMIT_MS);
    for (int i = 0; i < MOST_STATEMENTS && run_statement(data, size, &at, &changed); i++)
        ;
    kept_limit_ms(0);
    tp_interrupt_clear(kept);
    if (changed)
        tp_restore_initial_tables(kept);
    return 0;
}
