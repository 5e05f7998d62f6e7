/* Specs of any bytes over a small recording, text and binary: each gives a summary or an error, a summarizer stores its
 * queries or says why not, and no table of theirs stays behind. */
#include "kept.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    kept_begin(argc, argv);
    kept_load();
    return 0;
}

static void check_failed(int rc)
{
    if (rc < 0 && !tp_error(kept)[0])
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
        int rc = tp_summarize(kept, both[i], &bytes, &len);
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
    if (tp_query(kept,
                 "select count(*) from sqlite_master where name glob '_meridian_summary_*' or name glob '_exp_mat_*'",
                 &r) != 0)
        return; /* a spec's own SQL has made sqlite_master unreadable */
    if (tp_step(r) == 1 && tp_int64(r, 0) != 0)
        abort();
    tp_result_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LIMIT_MS = 50 };
    static const enum tp_spec_format formats[] = {TP_SPEC_TEXT, TP_SPEC_BINARY};
    struct tp_summarizer *s;
    kept_limit_ms(LIMIT_MS);
    if (tp_summarizer_open(kept, &s) != 0)
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
    kept_limit_ms(0);
    tp_interrupt_clear(kept);
    tp_summarizer_close(s);
    check_tables();
    if (kept_changes(data, size))
        tp_restore_initial_tables(kept);
    return 0;
}
