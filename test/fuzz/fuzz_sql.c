/* SQL over a small recording: any text must give rows or an error. */
#include "meridian/tp.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct tp *tp; /* the recording is loaded once */

static void close_trace(void)
{
    tp_close(tp);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (tp_open(&tp, NULL) != 0 || tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/linux-deflate.pftrace") != 0 ||
        tp_finish(tp) != 0) {
        fprintf(stderr, "%s\n", tp_error(tp));
        exit(1);
    }
    atexit(close_trace);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_ROWS = 1000, MOST_STATEMENTS = 50 };
    struct tp_result *r;
    size_t at = 0;
    for (int i = 0; i < MOST_STATEMENTS && tp_query_next(tp, "fuzz", (const char *)data, size, &at, &r) == 1; i++) {
        for (int rows = 0; rows < MOST_ROWS && tp_step(r) == 1; rows++)
            for (int c = 0; c < tp_columns(r); c++)
                tp_text(r, c, NULL);
        tp_result_close(r);
    }
    tp_restore_initial_tables(tp);
    return 0;
}
