/* Track events and interned data: records of the input become packets of one sequence, so that what is fuzzed is the
 * inside of messages rather than the framing. A record is {kind, length (2 bytes, little endian), bytes}. */
#include "importer/importer.h"
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

/* Imports the trace and decodes the args of everything, as queries would. */
static void import(const struct pb_writer *w)
{
    struct import_options options = {0};
    struct storage st;
    struct importer *im;
    struct arg_list list = {0};
    struct error err;
    if (storage_init(&st) != 0)
        return;
    if (importer_open(&im, &st, &options, &err) == 0) {
        importer_feed(im, w->p, w->n, &err);
        importer_finish(im, &err);
        for (uint32_t id = 1; id <= args_count(&st.args); id++) {
            list.n = 0;
            args_values(&st.args, id, &list);
        }
        importer_close(im);
    }
    arg_list_free(&list);
    storage_free(&st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
    if (!w.failed)
        import(&w);
    pb_writer_free(&w);
    return 0;
}
