/* Makes a long trace out of a short one, deterministically: the ftrace bundles are repeated N times.
 *
 *     amplify IN.pftrace N OUT.pftrace [flush]
 *
 * With "flush", each copy is followed by what a service writes that drains its buffers into a file: two flushes and a
 * read of the buffers, at the end of the copy's time. Sorting by windows works with these.
 *
 * All other packets appear once, first. Every event timestamp of copy k (and the first of each delta-coded compact
 * list) is moved by k * (span + 1 ms), where span is the time from the earliest to the latest event of the recording.
 */
#include "base/file.h"
#include "base/vec.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TRACE_PACKET = 1,
    PACKET_FTRACE = 1,
    BUNDLE_EVENT = 2,
    BUNDLE_COMPACT = 4,
    COMPACT_SWITCH_TS = 1,
    COMPACT_WAKING_TS = 7,
    EVENT_TS = 1,
};

struct span {
    uint64_t first;
    uint64_t last;
};

static void note(struct span *s, uint64_t ts)
{
    if (ts < s->first)
        s->first = ts;
    if (ts > s->last)
        s->last = ts;
}

static void scan_compact(struct slice compact, struct span *s)
{
    struct pb_cursor c = pb_cursor(compact);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != COMPACT_SWITCH_TS && f.id != COMPACT_WAKING_TS)
            continue;
        struct pb_cursor list = pb_sub(&f);
        uint64_t ts = 0, delta;
        while (pb_next_packed(&list, &delta)) {
            ts += delta;
            note(s, ts);
        }
    }
}

static void scan_bundle(struct slice bundle, struct span *s)
{
    struct pb_cursor c = pb_cursor(bundle);
    struct pb_field f, ts;
    while (pb_next(&c, &f)) {
        if (f.id == BUNDLE_EVENT && pb_find(pb_bytes(&f), EVENT_TS, &ts))
            note(s, pb_u64(&ts));
        else if (f.id == BUNDLE_COMPACT)
            scan_compact(pb_bytes(&f), s);
    }
}

/* A field as it is. */
static void put_field(struct pb_writer *w, const struct pb_field *f)
{
    switch (f->wire) {
    case PB_VARINT:
        pb_put_varint(w, f->id, f->u);
        break;
    case PB_FIXED64:
        pb_put_fixed64(w, f->id, f->u);
        break;
    case PB_FIXED32:
        pb_put_fixed32(w, f->id, (uint32_t)f->u);
        break;
    default:
        pb_put_bytes(w, f->id, f->p, (size_t)f->u);
    }
}

/* Writers for nested messages: lengths are known before they are written, so that no length is padded. */
struct writers {
    struct pb_writer packet, bundle, inner, list;
};

static struct slice moved_event(struct writers *w, struct slice event, uint64_t by)
{
    struct pb_cursor c = pb_cursor(event);
    struct pb_field f;
    pb_writer_clear(&w->inner);
    while (pb_next(&c, &f)) {
        if (f.id == EVENT_TS)
            f.u += by;
        put_field(&w->inner, &f);
    }
    return pb_written(&w->inner);
}

static struct slice moved_compact(struct writers *w, struct slice compact, uint64_t by)
{
    struct pb_cursor c = pb_cursor(compact);
    struct pb_field f;
    pb_writer_clear(&w->inner);
    while (pb_next(&c, &f)) {
        uint64_t first;
        struct pb_cursor list = pb_sub(&f);
        if ((f.id == COMPACT_SWITCH_TS || f.id == COMPACT_WAKING_TS) && pb_next_packed(&list, &first)) {
            pb_writer_clear(&w->list);
            pb_put_raw_varint(&w->list, first + by);
            pb_put_raw(&w->list, list.p, (size_t)(list.end - list.p));
            pb_put_bytes(&w->inner, f.id, w->list.p, w->list.n);
        } else {
            put_field(&w->inner, &f);
        }
    }
    return pb_written(&w->inner);
}

static void put_packet(struct writers *w, struct slice packet, uint64_t by)
{
    struct pb_cursor c = pb_cursor(packet);
    struct pb_field f, g;
    pb_writer_clear(&w->packet);
    while (pb_next(&c, &f)) {
        if (f.id != PACKET_FTRACE) {
            put_field(&w->packet, &f);
            continue;
        }
        struct pb_cursor bundle = pb_sub(&f);
        pb_writer_clear(&w->bundle);
        while (pb_next(&bundle, &g)) {
            if (g.id != BUNDLE_EVENT && g.id != BUNDLE_COMPACT) {
                put_field(&w->bundle, &g);
                continue;
            }
            struct slice moved =
                g.id == BUNDLE_EVENT ? moved_event(w, pb_bytes(&g), by) : moved_compact(w, pb_bytes(&g), by);
            pb_put_bytes(&w->bundle, g.id, moved.p, moved.len);
        }
        pb_put_bytes(&w->packet, f.id, w->bundle.p, w->bundle.n);
    }
}

static int write_packet(FILE *out, struct slice packet)
{
    uint8_t head[11];
    head[0] = TRACE_PACKET << 3 | PB_BYTES;
    size_t n = 1 + pb_encode_varint(head + 1, packet.len);
    return fwrite(head, 1, n, out) == n && fwrite(packet.p, 1, packet.len, out) == packet.len ? 0 : -1;
}

/* A TracingServiceEvent of one flag. */
static int write_service_event(FILE *out, uint32_t flag, uint64_t ts)
{
    enum { PACKET_TIMESTAMP = 8, PACKET_SERVICE_EVENT = 69 };
    struct pb_writer w = {0};
    pb_put_varint(&w, PACKET_TIMESTAMP, ts);
    size_t event = pb_begin(&w, PACKET_SERVICE_EVENT);
    pb_put_varint(&w, flag, 1);
    pb_end(&w, event);
    int rc = write_packet(out, pb_written(&w));
    pb_writer_free(&w);
    return rc;
}

static int write_flush(FILE *out, uint64_t ts)
{
    enum { FLUSHED = 3, READ_COMPLETED = 4 };
    int rc = write_service_event(out, FLUSHED, ts);
    if (!rc)
        rc = write_service_event(out, FLUSHED, ts);
    return rc ? rc : write_service_event(out, READ_COMPLETED, ts);
}

int main(int argc, char **argv)
{
    bool flush = argc == 5 && strcmp(argv[4], "flush") == 0;
    if (argc != 4 && !flush) {
        fprintf(stderr, "usage: amplify IN.pftrace N OUT.pftrace [flush]\n");
        return 1;
    }
    struct mapped_file in;
    struct error err = {0};
    if (mapped_file_open(&in, argv[1], &err) != 0) {
        fprintf(stderr, "amplify: %s\n", err.text);
        return 1;
    }
    FILE *out = fopen(argv[3], "wb");
    if (!out) {
        perror(argv[3]);
        return 1;
    }
    unsigned long copies = strtoul(argv[2], NULL, 10);
    VEC(struct slice)
    bundles = {0};
    struct span span = {UINT64_MAX, 0};
    struct pb_cursor c = pb_cursor(in.bytes);
    struct pb_field f, g;
    int rc = 0;
    while (pb_next(&c, &f) && rc == 0) {
        if (f.id != TRACE_PACKET)
            continue;
        if (pb_find(pb_bytes(&f), PACKET_FTRACE, &g) && g.wire == PB_BYTES) {
            scan_bundle(pb_bytes(&g), &span);
            rc = vec_push(&bundles, pb_bytes(&f)) ? 0 : -1;
        } else {
            rc = write_packet(out, pb_bytes(&f));
        }
    }
    struct writers w = {0};
    for (unsigned long k = 0; k < copies && rc == 0; k++) {
        uint64_t by = k * (span.last - span.first + 1000000);
        for (size_t i = 0; i < bundles.n && rc == 0; i++) {
            put_packet(&w, bundles.p[i], by);
            rc = write_packet(out, pb_written(&w.packet));
        }
        if (flush && !rc)
            rc = write_flush(out, span.last + by);
    }
    if (fclose(out) != 0 || rc != 0 || w.packet.failed || w.bundle.failed || w.inner.failed || w.list.failed) {
        fprintf(stderr, "amplify: writing %s failed\n", argv[3]);
        return 1;
    }
    return 0;
}
