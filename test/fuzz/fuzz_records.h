/* Records of the input become packets of one sequence, so that what is fuzzed is the inside of messages rather than the
 * framing. A record is {kind, length (2 bytes, little endian), bytes}; each target has fields of its own. */
#ifndef MERIDIAN_TEST_FUZZ_RECORDS_H
#define MERIDIAN_TEST_FUZZ_RECORDS_H

#include "importer/importer.h"
#include "wire/pb_writer.h"

#include "fuzz.h"

#include <stdlib.h>

/* Imports the trace and decodes the args of everything, as queries would. */
static inline void import_records(const struct pb_writer *w)
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
        for (uint32_t id = 0; id < args_count(&st.args); id++) {
            list.n = 0;
            args_values(&st.args, argset_of_cell(id), &list);
        }
        importer_close(im);
    }
    arg_list_free(&list);
    storage_free(&st);
}

/* `fields`: what field of TracePacket each kind of record fills; three more kinds clear the sequence's state, lose it,
 * and give a whole packet. */
static inline int fuzz_records(const uint8_t *data, size_t size, const uint32_t *fields, unsigned n_fields)
{
    enum { CLEAR, LOST, PACKET, KINDS };
    struct pb_writer w = {0};
    uint64_t ts = 1000;
    for (size_t at = 0; at + 3 <= size;) {
        unsigned kind = data[at] % (n_fields + KINDS);
        size_t len = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        at += 3;
        if (len > size - at)
            len = size - at;
        size_t packet = pb_begin(&w, 1);
        if (kind == n_fields + PACKET) {
            pb_put_raw(&w, data + at, len);
        } else {
            pb_put_varint(&w, 8, ts += 10);
            pb_put_varint(&w, 10, 1);
            if (kind == n_fields + CLEAR)
                pb_put_varint(&w, 13, 1);
            else if (kind == n_fields + LOST)
                pb_put_varint(&w, 42, 1);
            else
                pb_put_bytes(&w, fields[kind], data + at, len);
        }
        pb_end(&w, packet);
        at += len;
    }
    if (!w.failed)
        import_records(&w);
    pb_writer_free(&w);
    return 0;
}

#endif
