/* Writes separate recordings as one proto trace.
 *
 * The reference comes first, as it is. Packets of the others get a machine id and sequence ids of their own. What is
 * known of a machine's clock is written as comparisons like those of a relay (RemoteClockSync), one a moment x of the
 * reference: the machine's clock y lies in [lo, hi] then, so a reading lo cannot have been later than x, and a reading
 * hi cannot have been earlier. Both are proven, so a reader with bounds gets true ones; and their middle is the map, so
 * a reader that averages offsets gets the best constant one. */
#include "importer/merge/write_merged.h"

#include "base/output_file.h"
#include "importer/clock/clock_queries.h"
#include "importer/clock/recordings.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <stdio.h>

enum {
    SEQUENCE_BITS = 24, /* of a sequence id in its file; the file's number stands above */
    MAX_FILES = 1 << (32 - SEQUENCE_BITS),
    FLUSH_BYTES = 1 << 20,
    EXCHANGES_MIN = 8,
    EXCHANGES_MAX = 512,
    FIRST_MACHINE_ID = 0x4d000001,
};

static const int64_t exchange_every_ns = INT64_C(2000000000);

struct merged {
    struct importer *im;
    struct reader *r;
    int fd;
    struct pb_writer out;
    uint32_t reference; /* machine row */
};

static int flush(struct merged *m, struct error *err)
{
    if (m->out.failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = file_write_all(m->fd, m->out.p, m->out.n, err);
    pb_writer_clear(&m->out);
    return rc;
}

/* What a machine is called in the file: 0 for the reference, its own number for one that a relay brought. */
static uint32_t machine_id(const struct merged *m, uint32_t row)
{
    uint64_t raw = m->im->machines.p[row]->raw_id;
    if (row == m->reference)
        return 0;
    return raw && raw <= UINT32_MAX ? (uint32_t)raw : FIRST_MACHINE_ID + row;
}

/* Copies a packet with another machine and sequence. */
static int copy_packet(struct merged *m, struct slice packet, const struct pending_trace *t, struct error *err)
{
    struct pb_cursor c = pb_cursor(packet);
    struct pb_field f;
    uint32_t machine = machine_id(m, t->machine), sequence = 0;
    size_t mark = pb_begin(&m->out, TRACE_PACKET);
    for (const uint8_t *from = packet.p; pb_next(&c, &f); from = c.p) {
        if (f.id == TRACE_PACKET_MACHINE_ID && pb_u32(&f))
            machine = pb_u32(&f);
        else if (f.id == TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID)
            sequence = pb_u32(&f);
        else if (f.id != TRACE_PACKET_MACHINE_ID)
            pb_put_raw(&m->out, from, (size_t)(c.p - from));
    }
    if (sequence >> SEQUENCE_BITS)
        return error_set(err, -MRD_ELIMIT, "%s: sequence id %u is too large to merge", t->name, sequence);
    if (sequence)
        pb_put_varint(&m->out, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID,
                      (uint64_t)t->serial << SEQUENCE_BITS | sequence);
    if (machine)
        pb_put_varint(&m->out, TRACE_PACKET_MACHINE_ID, machine);
    pb_end(&m->out, mark);
    return m->out.n >= FLUSH_BYTES || m->out.failed ? flush(m, err) : 0;
}

static int copy_trace(struct merged *m, struct slice bytes, const struct pending_trace *t, bool inside,
                      struct error *err);

static int copy_compressed(struct merged *m, const struct pb_field *f, const struct pending_trace *t, struct error *err)
{
    uint8_t *bytes;
    size_t len;
    uint64_t room = unpack_limit(f->u);
    int rc = reader_inflate_all(f->id == TRACE_PACKET_COMPRESSED_PACKETS ? FORMAT_GZIP : FORMAT_ZSTD, pb_bytes(f),
                                &bytes, &len, &room, err);
    rc = rc ? error_prefix(err, "%s", t->name) : copy_trace(m, slice_of(bytes, len), t, true, err);
    mem_free(bytes);
    return rc;
}

/* Packets of a trace that is not the reference. Its own comparisons of clocks were with a machine that is not a host
 * here: they are in the maps already. */
static int copy_trace(struct merged *m, struct slice bytes, const struct pending_trace *t, bool inside,
                      struct error *err)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f, g;
    int rc = 0;
    while (!rc && pb_next(&c, &f)) {
        if (f.id != TRACE_PACKET || f.wire != PB_BYTES)
            continue;
        struct slice packet = pb_bytes(&f);
        if (!inside && (pb_find(packet, TRACE_PACKET_COMPRESSED_PACKETS, &g) ||
                        pb_find(packet, TRACE_PACKET_ZSTD_COMPRESSED_PACKETS, &g)))
            rc = copy_compressed(m, &g, t, err);
        else if (!pb_find(packet, TRACE_PACKET_REMOTE_CLOCK_SYNC, &g) && !pb_find(packet, TRACE_PACKET_TRACE_UUID, &g))
            rc = copy_packet(m, packet, t, err);
    }
    return rc;
}

static void put_reading(struct pb_writer *w, uint32_t side, int64_t value)
{
    enum { CLOCKS = 1, CLOCK_ID = 1, TIMESTAMP = 2 };
    size_t snapshot = pb_begin(w, side), clock = pb_begin(w, CLOCKS);
    pb_put_varint(w, CLOCK_ID, CLOCK_ID_BOOTTIME);
    pb_put_i64(w, TIMESTAMP, value);
    pb_end(w, clock);
    pb_end(w, snapshot);
}

static void put_round(struct pb_writer *w, int64_t client, int64_t host)
{
    enum { SYNCED_CLOCKS = 1, CLIENT = 2, HOST = 3 };
    size_t round = pb_begin(w, SYNCED_CLOCKS);
    put_reading(w, CLIENT, client);
    put_reading(w, HOST, host);
    pb_end(w, round);
}

/* What the machine's clock can show at trace time x. */
static bool clock_range(const struct merged *m, uint32_t machine, int64_t x, int64_t *lo, int64_t *hi)
{
    int64_t y, error;
    if (!clock_query_to_machine(m->im, x, machine, CLOCK_ID_BOOTTIME, &y) ||
        !clock_query_error(m->im, machine, x, &error) || error > INT64_MAX / 4)
        return false;
    error += error / 500 + 2; /* it is one of trace time; the clocks differ by a thousandth at most */
    return !__builtin_sub_overflow(y, error, lo) && !__builtin_add_overflow(y, error, hi);
}

/* One comparison at x; *next gets the trace time behind it. */
static bool put_exchange(struct merged *m, uint32_t machine, int64_t x, int64_t *next)
{
    int64_t lo, hi, later_lo, later_hi, wait, end;
    if (!clock_range(m, machine, x, &lo, &hi) || __builtin_add_overflow(x, hi - lo, &end))
        return false;
    for (int tries = 0;; tries++) { /* the first moment at which the clock has certainly reached hi */
        if (tries == 8 || !clock_range(m, machine, end, &later_lo, &later_hi))
            return false;
        if (later_lo >= hi)
            break;
        if (__builtin_sub_overflow(hi, later_lo, &wait) || __builtin_add_overflow(end, wait, &end))
            return false;
    }
    size_t packet = pb_begin(&m->out, TRACE_PACKET);
    pb_put_varint(&m->out, TRACE_PACKET_MACHINE_ID, machine_id(m, machine));
    size_t sync = pb_begin(&m->out, TRACE_PACKET_REMOTE_CLOCK_SYNC);
    put_round(&m->out, lo, x);
    put_round(&m->out, hi, end);
    pb_end(&m->out, sync);
    pb_end(&m->out, packet);
    *next = end;
    return true;
}

static int put_comparisons(struct merged *m, uint32_t machine, struct error *err)
{
    int64_t begin = m->im->st->trace_start_ns, end = m->im->st->trace_end_ns;
    int64_t length;
    if (__builtin_sub_overflow(end, begin, &length) || length < 0)
        return error_set(err, -MRD_ELIMIT, "the traces are too far apart in time to be merged");
    int64_t n = length / exchange_every_ns;
    n = n < EXCHANGES_MIN ? EXCHANGES_MIN : n > EXCHANGES_MAX ? EXCHANGES_MAX : n;
    int64_t written = 0, step = length / n, next = INT64_MIN;
    for (int64_t i = 0; i <= n; i++) {
        int64_t x = begin + i * step;
        if (x > next && put_exchange(m, machine, x, &next))
            written++;
    }
    if (written < 2)
        return error_set(err, -MRD_ENOTFOUND, "cannot merge: the clock of machine %u is not related to the others",
                         machine);
    return flush(m, err);
}

/* The machines' names, as SystemInfo has them: those of the files, or what the recordings are called. */
static void put_names(struct merged *m)
{
    const struct storage *st = m->im->st;
    for (uint32_t row = 0; row < m->im->machines.n; row++) {
        struct slice name = strpool_view(&st->strings, (strid)table_get(&st->t[T_machine], machine_c_name, row));
        uint32_t id = machine_id(m, row);
        if (!name.len)
            continue;
        size_t packet = pb_begin(&m->out, TRACE_PACKET), info = pb_begin(&m->out, TRACE_PACKET_SYSTEM_INFO);
        pb_put_bytes(&m->out, SYSTEM_INFO_MACHINE_NAME, name.p, name.len);
        pb_end(&m->out, info);
        if (id)
            pb_put_varint(&m->out, TRACE_PACKET_MACHINE_ID, id);
        pb_end(&m->out, packet);
    }
}

/* Copies the last packet of statistics to `out`; it stays empty when there is none. */
static int find_last_stats(struct slice bytes, bool inside, struct pb_writer *out, struct error *err)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        if (f.id != TRACE_PACKET || f.wire != PB_BYTES)
            continue;
        struct slice packet = pb_bytes(&f);
        bool deflate = !inside && pb_find(packet, TRACE_PACKET_COMPRESSED_PACKETS, &g);
        if (deflate || (!inside && pb_find(packet, TRACE_PACKET_ZSTD_COMPRESSED_PACKETS, &g))) {
            uint8_t *unpacked;
            size_t len;
            uint64_t room = unpack_limit(g.u);
            int rc = reader_inflate_all(deflate ? FORMAT_GZIP : FORMAT_ZSTD, pb_bytes(&g), &unpacked, &len, &room, err);
            rc = rc ? rc : find_last_stats(slice_of(unpacked, len), true, out, err);
            mem_free(unpacked);
            if (rc)
                return rc;
        } else if (pb_find(packet, TRACE_PACKET_TRACE_STATS, &g)) {
            pb_writer_clear(out);
            pb_put_bytes(out, TRACE_PACKET, packet.p, packet.len);
        }
    }
    return out->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

/* The end of the file is that of the reference: its statistics stand last again. When one of the files has lost its
 * end, so has this one. */
static int put_end(struct merged *m, struct error *err)
{
    const struct importer *im = m->im;
    struct pb_writer stats = {0};
    int rc = 0;
    for (uint32_t file = 0; file < im->st->t[T_trace_file].n_rows; file++)
        if (stats_get_idx(&im->st->stats, 0, STAT_trace_cut_bytes, (int32_t)file) ||
            stats_get_idx(&im->st->stats, 0, STAT_trace_end_missing, (int32_t)file) ||
            stats_get_idx(&im->st->stats, 0, STAT_trace_still_written, (int32_t)file))
            return 0;
    for (size_t i = 0; i < m->r->pending.n && !rc; i++)
        if (m->r->pending.p[i].machine == m->reference)
            rc = find_last_stats(m->r->pending.p[i].bytes, false, &stats, err);
    if (!rc && stats.n)
        pb_put_raw(&m->out, stats.p, stats.n);
    pb_writer_free(&stats);
    return rc;
}

static int write_all(struct merged *m, struct error *err)
{
    const struct reader *r = m->r;
    int rc = 0;
    for (size_t i = 0; i < r->pending.n && !rc; i++) /* the host's packets come first */
        if (r->pending.p[i].machine == m->reference)
            rc = file_write_all(m->fd, r->pending.p[i].bytes.p, r->pending.p[i].bytes.len, err);
    for (uint32_t row = 0; row < m->im->machines.n && !rc; row++) {
        bool by_relay = remote_sync_host(m->im->remote, row) == m->reference && row != m->reference;
        if (row != m->reference && !by_relay) /* the reference's own comparisons are in its packets */
            rc = put_comparisons(m, row, err);
    }
    for (size_t i = 0; i < r->pending.n && !rc; i++)
        if (r->pending.p[i].machine != m->reference)
            rc = copy_trace(m, r->pending.p[i].bytes, &r->pending.p[i], false, err);
    if (!rc) {
        put_names(m);
        rc = put_end(m, err);
    }
    return rc ? rc : flush(m, err);
}

/* The recording whose clock is trace time; everything else has to be related to it. */
static int check(const struct merged *m, struct error *err)
{
    const struct reader *r = m->r;
    if (ctf_import_count(m->im) || r->pending.n != r->inputs)
        return error_set(err, -MRD_EUNSUPPORTED, "only proto traces given as files can be written as one");
    if (r->pending.n > MAX_FILES)
        return error_set(err, -MRD_ELIMIT, "no more than %d traces can be written as one", MAX_FILES);
    for (size_t i = 0; i < r->pending.n; i++)
        if (r->pending.n < 2 || !recordings_related(m->im, r->pending.p[i].recording))
            return error_set(err, -MRD_ENOTFOUND, "%s: no packets relate it to the others", r->pending.p[i].name);
    return 0;
}

int reader_write_merged(struct reader *r, const char *path, struct error *err)
{
    struct merged m = {.im = r->im, .r = r};
    m.reference = clock_graph_trace_clock(r->im->clocks).machine;
    int rc = check(&m, err);
    if (rc)
        return rc;
    struct output_file out; /* `path` may be one of the traces that are read */
    rc = output_file_open(&out, path, err);
    if (rc)
        return rc;
    m.fd = out.fd;
    rc = output_file_close(&out, write_all(&m, err), err);
    pb_writer_free(&m.out);
    return rc;
}
