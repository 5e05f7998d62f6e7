/* SQL over a small recording: any text must give rows or an error. */
#include "meridian/tp.h"

#include "changes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static struct tp *tp; /* the recording is loaded once */

static void close_trace(void)
{
    tp_close(tp);
}

/* Inputs may count forever; thousands of others wait. */
static void on_alarm(int signal_number)
{
    (void)signal_number;
    tp_interrupt(tp);
}

static void set_alarm(bool on)
{
    struct itimerval often = {.it_interval = {.tv_usec = 100000}, .it_value = {.tv_usec = 100000}};
    setitimer(ITIMER_REAL, on ? &often : &(struct itimerval){0}, NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (tp_open(&tp, NULL) != 0 || tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace") != 0 ||
        tp_finish(tp) != 0) {
        fprintf(stderr, "%s\n", tp_error(tp));
        exit(1);
    }
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm, .sa_flags = SA_RESTART}, NULL);
    atexit(close_trace);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST_ROWS = 100, MOST_STATEMENTS = 50 };
    struct tp_result *r;
    size_t at = 0;
    set_alarm(true);
    for (int i = 0; i < MOST_STATEMENTS && tp_query_next(tp, "fuzz", (const char *)data, size, &at, &r) == 1; i++) {
        for (int rows = 0; rows < MOST_ROWS && tp_step(r) == 1; rows++)
            for (int c = 0; c < tp_columns(r); c++)
                tp_text(r, c, NULL);
        tp_result_close(r);
    }
    set_alarm(false);
    tp_interrupt_clear(tp);
    if (fuzz_changes(data, size))
        tp_restore_initial_tables(tp);
    return 0;
}
