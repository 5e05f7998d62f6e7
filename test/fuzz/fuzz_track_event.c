/* Track events and interned data: records of the input become packets of one sequence, so that what is fuzzed is the
 * inside of messages rather than the framing. A record is {kind, length (2 bytes, little endian), bytes}. */
#include "meridian/tp.h"
#include "proto/pb_writer.h"

#include "fuzz.h"

#include <stdlib.h>

/* The field of TracePacket that a kind of record fills. */
static const uint32_t fields[] = {
    11, /* track_event */
    12, /* interned_data */
    60, /* track_descriptor */
    59, /* trace_packet_defaults */
    72, /* extension_descriptor */
    44, /* thread_descriptor */
    82, /* translation_table */
    2,  /* process_tree */
};
enum { N_FIELDS = sizeof fields / sizeof *fields, KIND_CLEAR = N_FIELDS, KIND_LOST, KIND_PACKET, N_KINDS };

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
        "select * from slice s left join args using (arg_set_id) limit 2000",
        "select * from track t left join args on t.dimension_arg_set_id = args.arg_set_id limit 500",
        "select * from track t left join args on t.source_arg_set_id = args.arg_set_id limit 500",
        "select * from counter limit 100",
        "select * from flow f left join args using (arg_set_id) limit 100",
        "select * from logs limit 100",
        "select * from thread left join process using (upid)",
        "select count(*) from state",
    };
    struct pb_writer w = {0};
    uint64_t ts = 1000;
    for (size_t at = 0; at + 3 <= size;) {
        unsigned kind = data[at] % N_KINDS;
        size_t len = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        at += 3;
        if (len > size - at)
            len = size - at;
        size_t packet = pb_begin(&w, 1);
        if (kind == KIND_PACKET) {
            pb_put_raw(&w, data + at, len);
        } else {
            pb_put_varint(&w, 8, ts += 10);
            pb_put_varint(&w, 10, 1);
            if (kind == KIND_CLEAR)
                pb_put_varint(&w, 13, 1);
            else if (kind == KIND_LOST)
                pb_put_varint(&w, 42, 1);
            else
                pb_put_bytes(&w, fields[kind], data + at, len);
        }
        pb_end(&w, packet);
        at += len;
    }
    struct tp_config config = {.full_sort = false};
    struct tp *tp;
    if (!w.failed && tp_open(&tp, &config) == 0) {
        tp_feed(tp, w.p, w.n);
        tp_finish(tp);
        for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
            ask(tp, questions[i]);
        tp_close(tp);
    }
    pb_writer_free(&w);
    return 0;
}
