/* Specs of any bytes over a small recording, text and binary: each gives a summary or an error, a summarizer stores its
 * queries or says why not, and no table of theirs stays behind. */
#include "meridian/tp.h"

#include "changes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static struct tp *tp; /* the recording is loaded once */

static void close_trace(void)
{
    tp_close(tp);
}

/* SQL of a spec may count forever. */
static void on_alarm(int signal_number)
{
    (void)signal_number;
    tp_interrupt(tp);
}

static void set_alarm(bool on)
{
    struct itimerval often = {.it_interval = {.tv_usec = 50000}, .it_value = {.tv_sec = on}};
    setitimer(ITIMER_REAL, on ? &often : &(struct itimerval){0}, NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    if (tp_open(&tp, NULL) != 0 || tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace") != 0 ||
        tp_finish(tp) != 0) {
        fprintf(stderr, "%s\n", tp_error(tp));
        exit(1);
    }
    sigaction(SIGALRM, &action, NULL);
    atexit(close_trace);
    return 0;
}

static void check_failed(int rc)
{
    if (rc < 0 && !tp_error(tp)[0])
        abort();
}

static void summarize(const struct tp_spec *spec, bool text)
{
    const struct tp_summary what = {
        .specs = spec, .n_specs = 1, .all_metrics = true, .metadata_query = "meta", .text = text};
    const struct tp_summary metrics = {.specs = spec, .n_specs = 1, .all_metrics = true, .text = text};
    const struct tp_summary *both[] = {&what, &metrics};
    for (int i = 0; i < 2; i++) {
        void *bytes;
        size_t len;
        int rc = tp_summarize(tp, both[i], &bytes, &len);
        check_failed(rc);
        if ((rc == 0) != (bytes != NULL) || (text && bytes && strlen(bytes) != len))
            abort();
        tp_free(bytes);
    }
}

static void store(struct tp_summarizer *s, const struct tp_spec *spec)
{
    const struct tp_query_change *changes;
    struct tp_query_table table;
    size_t n;
    int rc = tp_summarizer_update(s, spec, &changes, &n);
    check_failed(rc);
    for (size_t i = 0; rc == 0 && i < n && i < 20; i++) {
        if (changes[i].dropped)
            continue;
        int asked = tp_summarizer_query(s, changes[i].id, &table);
        check_failed(asked);
        if (asked == 0 && (!table.exists || !table.table || !table.sql || !table.text || !table.standalone_sql))
            abort();
    }
}

static void check_tables(void)
{
    struct tp_result *r;
    if (tp_query(tp,
                 "select count(*) from sqlite_master where name glob '_meridian_summary_*' or name glob '_exp_mat_*'",
                 &r) != 0)
        return; /* a spec's own SQL has made sqlite_master unreadable */
    if (tp_step(r) == 1 && tp_int64(r, 0) != 0)
        abort();
    tp_result_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum tp_spec_format formats[] = {TP_SPEC_TEXT, TP_SPEC_BINARY};
    struct tp_summarizer *s;
    set_alarm(true);
    if (tp_summarizer_open(tp, &s) != 0)
        abort();
    for (int i = 0; i < 2; i++) {
        const struct tp_spec spec = {.bytes = data, .len = size, .format = formats[i], .name = "fuzz"};
        const struct tp_spec shorter = {.bytes = data, .len = size / 2, .format = formats[i], .name = "fuzz"};
        summarize(&spec, true);
        summarize(&spec, false);
        store(s, &spec);
        store(s, &shorter);
        store(s, &spec);
    }
    set_alarm(false);
    tp_interrupt_clear(tp);
    tp_summarizer_close(s);
    check_tables();
    if (fuzz_changes(data, size))
        tp_restore_initial_tables(tp);
    return 0;
}
