/* Searches recordings for the packets that relate them. */
#include "importer/merge/relate.h"

#include "importer/clock/recordings.h"
#include "importer/ctf/ctf_import.h"
#include "importer/ftrace/packet_headers.h"
#include "importer/proto/trace_reader.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdio.h>

/* Fields of TracePacket. */
enum { FTRACE_EVENTS = 1, COMPRESSED = 50, MACHINE_ID = 98, ZSTD_COMPRESSED = 133 };

enum { MAX_NESTED = 1 /* compressed packets hold packets, not compressed ones again */ };

struct look {
    struct importer *im;
    struct packet_headers headers;
    uint32_t recording;
};

static int found(void *ctx, enum packet_direction direction, int64_t boot_ns, struct packet_key key)
{
    struct look *l = ctx;
    return recordings_packet(l->im, l->recording, direction, boot_ns, key);
}

static int look_through(struct look *l, struct slice trace, int nested);

static int look_inside(struct look *l, const struct pb_field *compressed, int nested)
{
    enum trace_format format = compressed->id == COMPRESSED ? FORMAT_GZIP : FORMAT_ZSTD;
    uint8_t *bytes = NULL;
    size_t len;
    uint64_t room = unpack_limit(compressed->u);
    if (nested >= MAX_NESTED)
        return 0;
    int rc = reader_inflate_all(format, pb_bytes(compressed), &bytes, &len, &room, NULL);
    if (!rc)
        rc = look_through(l, slice_of(bytes, len), nested + 1);
    else if (rc != -MRD_ENOMEM)
        rc = 0; /* reading the trace will tell what is wrong with it */
    mem_free(bytes);
    return rc;
}

/* Packets of the machine that made the recording: those that name no machine. */
static int look_through(struct look *l, struct slice trace, int nested)
{
    struct pb_cursor c = pb_cursor(trace);
    struct pb_field f, g;
    int rc = 0;
    while (!rc && pb_next(&c, &f)) {
        if (f.id != TRACE_PACKET)
            continue;
        struct pb_cursor packet = pb_sub(&f);
        struct slice bundle = {0};
        bool remote = false;
        while (!rc && pb_next(&packet, &g)) {
            if (g.id == FTRACE_EVENTS)
                bundle = pb_bytes(&g);
            else if (g.id == MACHINE_ID)
                remote = pb_u32(&g) != 0;
            else if (g.id == COMPRESSED || g.id == ZSTD_COMPRESSED)
                rc = look_inside(l, &g, nested);
        }
        if (!rc && bundle.p && !remote)
            rc = packet_headers_bundle(&l->headers, bundle, found, l);
    }
    return rc;
}

static int collect(struct reader *r, struct pending_trace *t)
{
    struct look l = {.im = r->im};
    int rc = recordings_add(r->im, t->name, &t->recording);
    l.recording = t->recording;
    if (!rc)
        rc = look_through(&l, t->bytes, 0);
    if (l.headers.other_clocks)
        stats_add_idx(&r->im->st->stats, 0, STAT_packet_headers_other_clock, (int32_t)t->serial,
                      (int64_t)l.headers.other_clocks);
    return rc;
}

static bool name_is_taken(const struct reader *r, const struct pending_trace *t)
{
    for (const struct pending_trace *other = r->pending.p; other < t; other++)
        if (strcmp(other->name, t->name) == 0)
            return true;
    return false;
}

/* A machine of its own, but for the first trace, which is the host of all that is read with it. */
static int give_machine(struct reader *r, struct pending_trace *t)
{
    if (t->serial && recordings_related(r->im, t->recording)) {
        char name[300];
        if (name_is_taken(r, t))
            snprintf(name, sizeof name, "%s (%u)", t->name, t->serial);
        else
            snprintf(name, sizeof name, "%s", t->name);
        struct machine_ctx *m = importer_named_machine(r->im, name);
        if (!m)
            return -MRD_ENOMEM;
        m->keeps_name = false; /* what the recording says is better than the name of its file */
        m->clock_file = t->clock_file;
        t->machine = m->id;
    }
    struct clock_id clock = {.id = CLOCK_ID_BOOTTIME, .machine = t->machine, .file = t->clock_file};
    recordings_place(r->im, t->recording, t->machine, clock);
    return 0;
}

static int relate(struct reader *r)
{
    size_t first = r->n_read, end = r->pending.n;
    bool alone = first == end;
    int rc = 0;
    if (end - first + ctf_import_count(r->im) < 2)
        return ctf_import_prepare(r->im, alone);
    for (size_t i = first; i < end && !rc; i++)
        rc = collect(r, &r->pending.p[i]);
    if (!rc)
        rc = ctf_import_prepare(r->im, alone);
    if (!rc)
        rc = recordings_solve(r->im, alone ? SYNC_NO_HOST : (int)r->pending.p[first].recording);
    for (size_t i = first; i < end && !rc; i++)
        rc = give_machine(r, &r->pending.p[i]);
    return rc ? rc : recordings_relate(r->im);
}

int relate_recordings(struct reader *r, struct error *err)
{
    int rc = relate(r);
    return rc ? error_set(err, rc, "relating the recordings: %s", error_code_text(rc))
              : recordings_check_reference(r->im, err);
}
