/* What a service says about broken links to its machines: stats, and the tables of absences. */
#include "importer/proto/machine_losses.h"

#include "importer/clock/clock_graph.h"
#include "importer/core/context.h"
#include "importer/proto/special_packets.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

/* The last word about a machine: a service repeats itself as often as it writes into its file. */
struct last_word {
    const struct machine_ctx *m;
    uint8_t *bytes;
    size_t len;
};

struct machine_losses {
    VEC(struct last_word)
    words;
};

static const struct {
    uint32_t field;
    enum stat_key stat;
} stats_of[] = {
    {MACHINE_LOSSES_PRODUCERS_LOST, STAT_machine_producers_lost},
    {MACHINE_LOSSES_PRODUCERS_BACK, STAT_machine_producers_back},
    {MACHINE_LOSSES_PRODUCERS_CUT, STAT_machine_producers_cut},
    {MACHINE_LOSSES_AWAY_NS, STAT_machine_away_ns},
    {MACHINE_LOSSES_BYTES_CUT, STAT_machine_bytes_cut},
    {MACHINE_LOSSES_PACKETS_UNFINISHED, STAT_machine_packets_unfinished},
    {MACHINE_LOSSES_RELAY_BYTES_LOST, STAT_machine_relay_bytes_lost},
    {MACHINE_LOSSES_RELAYS_LOST, STAT_machine_relay_lost},
    {MACHINE_LOSSES_NOT_RECORDED, STAT_machine_not_recorded},
    {MACHINE_LOSSES_PACKETS_UNKNOWN, STAT_machine_packets_unknown},
};

static bool keep_word(struct importer *im, const struct machine_ctx *m, struct slice payload)
{
    struct machine_losses *all = im->losses ? im->losses : (im->losses = mem_zalloc(sizeof *all));
    struct last_word *word = NULL;
    if (!all)
        return false;
    for (size_t i = 0; i < all->words.n && !word; i++)
        if (all->words.p[i].m == m)
            word = &all->words.p[i];
    uint8_t *bytes = mem_alloc(payload.len + 1);
    if (!bytes || (!word && !vec_push(&all->words, (struct last_word){.m = m}))) {
        mem_free(bytes);
        return false;
    }
    word = word ? word : vec_last(&all->words);
    mem_free(word->bytes);
    memcpy(bytes, payload.p, payload.len);
    word->bytes = bytes;
    word->len = payload.len;
    return true;
}

enum tokenize_result machine_losses_packet(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    bool absences = false;
    while (pb_next(&c, &f)) {
        absences |= f.id == MACHINE_LOSSES_ABSENCES;
        for (size_t i = 0; i < sizeof stats_of / sizeof *stats_of; i++)
            if (stats_of[i].field == f.id)
                stats_set_idx(&p->m->st->stats, p->m->id, stats_of[i].stat, (int32_t)p->m->id, pb_i64(&f));
    }
    if (absences && !keep_word(p->m->im, p->m, p->field))
        p->m->im->failed = true;
    return TOKENIZE_DONE;
}

/* A time of the service's BOOTTIME in trace time. */
static bool trace_time(struct importer *im, uint64_t boot_ns, int64_t *ts)
{
    struct clock_id clock = {.id = CLOCK_ID_BOOTTIME, .machine = im->input.base_machine, .file = im->input.clock_file};
    return boot_ns <= INT64_MAX && clock_graph_to_trace_time(im->clocks, clock, (int64_t)boot_ns, ts) == 0;
}

static void write_sequence(struct importer *im, uint32_t absence, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct machine_absence_sequence_row row = {.absence_id = absence, .last_ts = COL_NULL};
    while (pb_next(&c, &f)) {
        if (f.id == MACHINE_LOSSES_ABSENCE_SEQUENCE_ID)
            row.sequence = pb_u32(&f);
        else if (f.id == MACHINE_LOSSES_ABSENCE_SEQUENCE_LAST_NS && !trace_time(im, pb_u64(&f), &row.last_ts))
            row.last_ts = COL_NULL;
    }
    machine_absence_sequence_insert(im->st, &row);
}

static void write_absence(struct importer *im, const struct machine_ctx *m, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    uint64_t since = 0, until = 0;
    struct machine_absence_row row = {.machine_id = m->id, .dur = COL_NULL};
    while (pb_next(&c, &f)) {
        if (f.id == MACHINE_LOSSES_ABSENCE_PRODUCER)
            row.producer = import_slice(im, pb_bytes(&f));
        else if (f.id == MACHINE_LOSSES_ABSENCE_SINCE_NS)
            since = pb_u64(&f);
        else if (f.id == MACHINE_LOSSES_ABSENCE_UNTIL_NS)
            until = pb_u64(&f);
    }
    if ((until && until < since) || !trace_time(im, since, &row.ts)) {
        stats_add_idx(&im->st->stats, m->id, STAT_machine_absences_dropped, (int32_t)m->id, 1);
        return;
    }
    if (until)
        row.dur = (int64_t)(until - since);
    uint32_t id = machine_absence_insert(im->st, &row);
    for (c = pb_cursor(message); pb_next(&c, &f);)
        if (f.id == MACHINE_LOSSES_ABSENCE_SEQUENCES)
            write_sequence(im, id, pb_bytes(&f));
}

void machine_losses_end_file(struct importer *im)
{
    struct machine_losses *all = im->losses;
    im->losses = NULL;
    for (size_t i = 0; all && i < all->words.n; i++) {
        struct pb_cursor c = pb_cursor(slice_of(all->words.p[i].bytes, all->words.p[i].len));
        struct pb_field f;
        while (pb_next(&c, &f))
            if (f.id == MACHINE_LOSSES_ABSENCES)
                write_absence(im, all->words.p[i].m, pb_bytes(&f));
    }
    machine_losses_free(all);
}

void machine_losses_free(struct machine_losses *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->words.n; i++)
        mem_free(all->words.p[i].bytes);
    vec_free(&all->words);
    mem_free(all);
}
