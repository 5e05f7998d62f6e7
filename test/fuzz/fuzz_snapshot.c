/* Snapshots: whatever stands in one, opening it fails with an error or its tables can be asked.
 *
 * An input is changes of a good snapshot of a small trace: 4 bytes of place (in one of its sections, chosen by the low
 * bits), a length and so many bytes. The sums are made right again, or nothing but they would be looked at. */
#include "meridian/tp.h"
#include "snapshot_reseal.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint8_t *good, *changed;
static size_t good_len;

static void need(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "fuzz_snapshot: %s\n", what);
        exit(2);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char trace[] = MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace";
    char path[] = "/tmp/fuzz-snapshot-XXXXXX";
    struct tp *tp;
    (void)argc;
    (void)argv;
    int fd = mkstemp(path);
    need(fd >= 0, "no temporary file");
    need(tp_open(&tp, NULL) == 0 && tp_load(tp, trace) == 0 && tp_finish(tp) == 0 &&
             tp_write_snapshot(tp, path, trace) == 0,
         "the trace cannot be loaded");
    tp_close(tp);
    close(fd);
    FILE *f = fopen(path, "rb");
    need(f && fseek(f, 0, SEEK_END) == 0, path);
    good_len = (size_t)ftell(f);
    rewind(f);
    good = malloc(good_len);
    changed = aligned_alloc(64, (good_len + 63) / 64 * 64);
    need(good && changed && fread(good, 1, good_len, f) == good_len, path);
    fclose(f);
    unlink(path);
    return 0;
}

static void change(const uint8_t *data, size_t size)
{
    const struct snapshot_trailer *t = (const void *)(good + good_len - sizeof *t);
    memcpy(changed, good, good_len);
    while (size >= 5) {
        uint32_t where;
        memcpy(&where, data, 4);
        size_t len = data[4] % 32, section = where % (SNAPSHOT_SECTION_COUNT + 1);
        uint64_t offset = good_len - sizeof *t, room = sizeof *t;
        data += 5;
        size -= 5;
        len = len < size ? len : size;
        if (section < SNAPSHOT_SECTION_COUNT && t->sections[section].len) {
            offset = t->sections[section].offset;
            room = t->sections[section].len;
        }
        offset += where / (SNAPSHOT_SECTION_COUNT + 1) % room;
        if (offset + len <= good_len)
            memcpy(changed + offset, data, len);
        data += len;
        size -= len;
    }
    snapshot_reseal(changed, good_len);
}

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const questions[] = {
        "select * from slice limit 200",
        "select * from slice s join thread_track t on t.id = s.track_id left join thread using (utid) order by dur limit 200",
        "select * from args limit 500",
        "select extract_arg(arg_set_id, 'debug.a') from slice",
        "select * from thread left join process using (upid)",
        "select * from counter c join track t on t.id = c.track_id",
        "select name, count(*) from slice group by name order by name",
        "select * from stats",
        "select * from metadata",
        "select *, to_machine_time(start_ts, 0, 'REALTIME'), clock_error_ns(start_ts, 0) from trace_bounds",
        "select * from flow",
        "select * from _slice_flattened limit 10",
    };
    struct tp *tp;
    change(data, size);
    if (tp_open(&tp, NULL) == 0 && tp_feed(tp, changed, good_len) == 0 && tp_finish(tp) == 0)
        for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
            ask(tp, questions[i]);
    tp_close(tp);
    return 0;
}
