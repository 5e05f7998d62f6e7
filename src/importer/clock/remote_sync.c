/* Keeps what is known about the clocks of remote machines: rounds, the model chosen for each machine, its line. */
#include "importer/clock/remote_private.h"

#include "base/bisect.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

struct remote_sync *remote_sync_open(struct importer *im)
{
    struct remote_sync *s = mem_zalloc(sizeof *s);
    if (s)
        s->im = im;
    return s;
}

static void free_machine(struct remote_machine *r)
{
    for (size_t k = 0; k < r->packet_rounds.n; k++)
        vec_free(&r->packet_rounds.p[k]);
    vec_free(&r->packet_rounds);
    vec_free(&r->rounds);
    clock_line_free(&r->line);
    mem_free(r);
}

void remote_sync_close(struct remote_sync *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->machines.n; i++)
        free_machine(s->machines.p[i]);
    vec_free(&s->machines);
    mem_free(s);
}

/* The first boot of a machine. */
static struct remote_machine *find(const struct remote_sync *s, uint64_t raw_id)
{
    for (size_t i = 0; i < s->machines.n; i++)
        if (s->machines.p[i]->raw_id == raw_id)
            return s->machines.p[i];
    return NULL;
}

static struct remote_machine *get(struct remote_sync *s, uint64_t raw_id)
{
    struct remote_machine *r = find(s, raw_id);
    return r ? r : remote_add_boot(s, raw_id, NULL);
}

static struct clock_reading read_clock(struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct clock_reading r = {.multiplier = 1};
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case CLOCK_SNAPSHOT_CLOCK_CLOCK_ID:
            r.clock.id = pb_u32(&f);
            break;
        case CLOCK_SNAPSHOT_CLOCK_TIMESTAMP:
            r.value = pb_i64(&f);
            break;
        case CLOCK_SNAPSHOT_CLOCK_UNIT_MULTIPLIER_NS:
            r.multiplier = pb_i64(&f);
            break;
        }
    }
    return r;
}

/* One side of a round: the clocks of a ClockSnapshot. */
static size_t read_side(struct slice snapshot, struct clock_reading *out)
{
    struct pb_cursor c = pb_cursor(snapshot);
    struct pb_field f;
    size_t n = 0;
    while (pb_next(&c, &f))
        if (f.id == CLOCK_SNAPSHOT_CLOCKS && n < CLOCK_ROUND_MAX)
            out[n++] = read_clock(pb_bytes(&f));
    return n;
}

static bool read_rounds(struct slice payload, struct clock_rounds *rounds)
{
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f, side;
    bool first = true;
    while (pb_next(&c, &f)) {
        if (f.id != REMOTE_CLOCK_SYNC_SYNCED_CLOCKS && f.id != REMOTE_CLOCK_SYNC_MORE_CLOCKS)
            continue;
        struct clock_round *r = vec_add(rounds);
        if (!r)
            return false;
        r->extra = f.id == REMOTE_CLOCK_SYNC_MORE_CLOCKS;
        r->first = first;
        first = false;
        struct pb_cursor round = pb_sub(&f);
        while (pb_next(&round, &side)) {
            if (side.id == REMOTE_CLOCK_SYNC_SYNCED_CLOCKS_CLIENT_CLOCKS)
                r->n_client = read_side(pb_bytes(&side), r->client);
            else if (side.id == REMOTE_CLOCK_SYNC_SYNCED_CLOCKS_HOST_CLOCKS)
                r->n_host = read_side(pb_bytes(&side), r->host);
            else if (side.id == REMOTE_CLOCK_SYNC_SYNCED_CLOCKS_SOURCE_PERIOD)
                r->source_period = pb_u32(&side);
        }
    }
    return true;
}

static void set_machine(const struct remote_machine *r, struct clock_rounds *rounds)
{
    for (size_t i = 0; i < rounds->n; i++) {
        for (size_t k = 0; k < rounds->p[i].n_client; k++) {
            rounds->p[i].client[k].clock.machine = (uint32_t)r->machine;
            rounds->p[i].client[k].clock.file = r->clock_file;
        }
    }
}

static bool append_rounds(struct remote_machine *r, const struct clock_rounds *rounds)
{
    if (!rounds->n)
        return true;
    if (!vec_reserve(&r->rounds, r->rounds.n + rounds->n))
        return false;
    memcpy(r->rounds.p + r->rounds.n, rounds->p, rounds->n * sizeof *rounds->p);
    r->rounds.n += rounds->n;
    return true;
}

/* Whether the machine is on a linear clock as far as is known; a later boot always is. */
static bool wants_line(const struct remote_sync *s, const struct remote_machine *r)
{
    enum import_clock_model model = s->im->opt.clock_model;
    return model == CLOCK_MODEL_LINEAR || (model == CLOCK_MODEL_AUTO && (r->packets > 1 || r->boot || r->more));
}

static void note_more(struct remote_machine *r, const struct clock_rounds *rounds)
{
    for (size_t i = 0; i < rounds->n; i++)
        r->more |= rounds->p[i].extra;
}

void remote_sync_note(struct remote_sync *s, uint64_t raw_id, struct slice payload)
{
    struct remote_machine *r = get(s, raw_id);
    struct clock_rounds rounds = {0};
    if (!r)
        return;
    r->packets++;
    bool ok = read_rounds(payload, &rounds);
    note_more(r, &rounds);
    if (!ok || !remote_deal_rounds(s, r, &rounds, wants_line(s, r) && !r->decided, append_rounds))
        s->im->failed = true;
    vec_free(&rounds);
}

static void add_sample(struct remote_machine *r, const struct clock_round *round, int64_t client, int64_t host)
{
    const int64_t *client_raw = round_value(round->client, round->n_client, CLOCK_ID_MONOTONIC_RAW);
    const int64_t *host_raw = round_value(round->host, round->n_host, CLOCK_ID_MONOTONIC_RAW);
    struct clock_sample s = {.remote = client, .host = host, .source_period = round->source_period};
    if (client_raw && host_raw && s.source_period) {
        s.has_raw = !__builtin_sub_overflow(client, *client_raw, &s.ahead[0]);
        s.has_raw &= !__builtin_sub_overflow(host, *host_raw, &s.ahead[1]);
    }
    clock_line_add(&r->line, &s);
}

/* The machine's rounds as a line between the two BOOTTIMEs. */
static bool fit(struct remote_machine *r)
{
    for (size_t i = 0; i < r->rounds.n; i++) {
        const struct clock_round *round = &r->rounds.p[i];
        const int64_t *client = round_value(round->client, round->n_client, CLOCK_ID_BOOTTIME);
        const int64_t *host = round_value(round->host, round->n_host, CLOCK_ID_BOOTTIME);
        if (client && host)
            add_sample(r, round, *client, *host);
    }
    return clock_line_fit(&r->line) == 0;
}

/* A clock_line as the clock graph takes it. */
static int64_t line_to_host(const void *line, int64_t remote)
{
    return clock_line_to_host(line, remote);
}

static int64_t line_to_remote(const void *line, int64_t host)
{
    return clock_line_to_remote(line, host);
}

static const struct sync_transform *line_piece(const void *line, int64_t remote, int64_t *first, int64_t *end)
{
    return clock_line_piece(line, remote, first, end);
}

static const struct clock_map_ops line_ops = {line_to_host, line_to_remote, line_piece};

struct clock_map remote_line_map(const struct remote_machine *r)
{
    return (struct clock_map){&line_ops, &r->line};
}

/* Chooses the model, once all rounds are known and the machine has a row; installs the line. */
static void decide(struct remote_sync *s, struct remote_machine *r)
{
    if (r->decided || r->machine <= 0)
        return;
    r->decided = true;
    r->linear = wants_line(s, r) && fit(r);
    if (!r->linear)
        return;
    uint32_t machine = (uint32_t)r->machine;
    set_machine(r, &r->rounds);
    struct clock_id remote = {.id = CLOCK_ID_BOOTTIME, .machine = machine, .file = r->clock_file};
    struct clock_id host = {.id = CLOCK_ID_BOOTTIME, .machine = r->host, .file = r->clock_file};
    if (!clock_graph_add_map(s->im->clocks, remote, host, remote_line_map(r)))
        s->im->failed = true;
    for (size_t i = 0; i < r->rounds.n; i++) /* they relate the machine's other clocks to its BOOTTIME */
        clock_graph_add_snapshot(s->im->clocks, r->rounds.p[i].client, r->rounds.p[i].n_client);
    r->synced = true;
}

/* Where the machine stands in the trace that is being read. */
static void place(const struct remote_sync *s, struct remote_machine *r)
{
    if (r->decided)
        return;
    r->host = s->im->input.base_machine;
    r->clock_file = s->im->input.clock_file;
}

/* Forgets what has been noted of machines that no trace before has decided on. */
static void forget(struct remote_sync *s)
{
    size_t n = 0;
    s->rebooted = false;
    for (size_t i = 0; i < s->machines.n; i++) {
        struct remote_machine *r = s->machines.p[i];
        if (!r->decided && r->boot) {
            free_machine(r);
            continue;
        }
        s->machines.p[n++] = r;
        s->rebooted |= r->boot != 0;
        if (r->decided)
            continue;
        r->packets = 0;
        r->more = false;
        r->next_boot = NULL;
        r->current = r;
        r->seen = false;
        vec_clear(&r->rounds);
    }
    s->machines.n = n;
}

void remote_sync_known(struct remote_sync *s, bool known)
{
    s->known = known;
    s->at_end = false;
    if (!known)
        forget(s);
    for (size_t i = 0; known && i < s->machines.n; i++) {
        struct remote_machine *r = s->machines.p[i];
        if (r->rounds.n && r->machine > 0) { /* it has a row already: from another trace, or by the manifest */
            place(s, r);
            decide(s, r);
        }
    }
}

void remote_sync_machine(struct remote_sync *s, struct machine_ctx *m)
{
    if (!m->id)
        return;
    struct remote_machine *r = get(s, m->raw_id);
    while (r && r->boot < m->boot)
        r = r->next_boot;
    if (!r)
        return;
    r->machine = m->id;
    place(s, r);
    if (s->known)
        decide(s, r);
}

static void compatible(struct remote_sync *s, struct remote_machine *r, struct clock_rounds *rounds)
{
    size_t n = 0;
    for (size_t i = 0; i < rounds->n; i++)
        if (!rounds->p[i].extra)
            rounds->p[n++] = rounds->p[i];
    rounds->n = n;
    set_machine(r, rounds);
    struct clock_id remote = {.machine = (uint32_t)r->machine, .file = r->clock_file};
    remote_sync_compatible(s->im, remote, (struct clock_id){.machine = r->host, .file = r->clock_file}, rounds);
    r->synced |= rounds->n > 1;
}

/* Keeps the rounds of a packet until the end of the file. */
static bool keep_rounds(struct remote_machine *r, const struct clock_rounds *rounds)
{
    struct clock_rounds copy = {0};
    if (!append_rounds(r, rounds) || !vec_reserve(&copy, rounds->n + 1) || !vec_push(&r->packet_rounds, copy)) {
        vec_free(&copy);
        return false;
    }
    struct clock_rounds *kept = vec_last(&r->packet_rounds);
    if (rounds->n)
        memcpy(kept->p, rounds->p, rounds->n * sizeof *rounds->p);
    kept->n = rounds->n;
    return true;
}

void remote_sync_packet(struct remote_sync *s, struct machine_ctx *m, struct slice payload)
{
    struct remote_machine *r = m->id ? get(s, m->raw_id) : NULL;
    if (!r)
        return; /* nothing to relate: the packet names no machine, or the only one there is */
    struct clock_rounds rounds = {0};
    place(s, r);
    if (!read_rounds(payload, &rounds)) {
        s->im->failed = true;
    } else if (remote_sync_waits(s, m)) {
        r->packets++;
        note_more(r, &rounds);
        if (!remote_deal_rounds(s, r, &rounds, wants_line(s, r), keep_rounds))
            s->im->failed = true;
    } else if (!r->linear && !r->next_boot) {
        compatible(s, r, &rounds);
    } /* else its rounds are in a line already */
    const struct clock_round *last = rounds.n ? vec_last(&rounds) : NULL;
    const int64_t *host = last ? round_value(last->host, last->n_host, CLOCK_ID_BOOTTIME) : NULL;
    if (host)
        r->current = remote_boot_at(r, *host);
    vec_free(&rounds);
}

bool remote_sync_waits(const struct remote_sync *s, const struct machine_ctx *m)
{
    return m->id && !s->known && !s->at_end && s->im->opt.clock_model != CLOCK_MODEL_COMPATIBLE;
}

void remote_sync_end_file(struct remote_sync *s)
{
    s->at_end = true;
    for (size_t i = 0; i < s->machines.n; i++) {
        struct remote_machine *r = s->machines.p[i];
        decide(s, r);
        for (size_t k = 0; k < r->packet_rounds.n; k++) {
            if (!r->linear && r->machine != NO_MACHINE)
                compatible(s, r, &r->packet_rounds.p[k]);
            vec_free(&r->packet_rounds.p[k]);
        }
        vec_free(&r->packet_rounds);
    }
}

/* The first sample at or behind a reading. */
static size_t sample_at(const struct clock_line *l, int64_t remote)
{
    size_t at = l->samples.n;
    BISECT(at, mid, l->samples.p[mid].remote < remote);
    return at;
}

/* The readings from `first` to `end`, and the least time between one and the next. */
static uint32_t count_samples(const struct clock_line *l, int64_t first, int64_t end, int64_t *min_rtt)
{
    uint32_t n = 0;
    *min_rtt = INT64_MAX;
    for (size_t i = sample_at(l, first); i < l->samples.n && l->samples.p[i].remote <= end; i++) {
        n++;
        if (i + 1 < l->samples.n && l->samples.p[i + 1].remote - l->samples.p[i].remote < *min_rtt)
            *min_rtt = l->samples.p[i + 1].remote - l->samples.p[i].remote;
    }
    return n;
}

static struct clock_id host_clock(const struct remote_machine *r)
{
    return (struct clock_id){.id = CLOCK_ID_BOOTTIME, .machine = r->host, .file = r->clock_file};
}

static int64_t to_trace(struct remote_sync *s, const struct remote_machine *r, int64_t host)
{
    int64_t ts;
    return clock_graph_to_trace_time(s->im->clocks, host_clock(r), host, &ts) == 0 ? ts : host;
}

/* One row a window: between two exchanges one straight line holds (within an exchange too, but that is too short to
 * tell). */
static void write_window(struct remote_sync *s, const struct remote_machine *r, int64_t first, int64_t end)
{
    const struct clock_line *l = &r->line;
    struct strpool *strings = &s->im->st->strings;
    int64_t y0 = clock_line_to_host(l, first), y1 = clock_line_to_host(l, end), rtt;
    uint32_t n = count_samples(l, first, end, &rtt);
    double drift = end > first ? (double)((y1 - y0) - (end - first)) / (double)(end - first) * 1e9 : 0;
    clock_sync_insert(s->im->st, &(struct clock_sync_row){.machine_id = r->machine,
                                                          .clock = strpool_intern_str(strings, "BOOTTIME"),
                                                          .start_ts = to_trace(s, r, y0),
                                                          .end_ts = to_trace(s, r, y1),
                                                          .offset_ns = first - y0,
                                                          .drift_ppb = -drift,
                                                          .max_error_ns = clock_line_worst(l, first, end),
                                                          .rounds = n,
                                                          .min_rtt_ns = rtt == INT64_MAX ? COL_NULL : rtt,
                                                          .step_ns = COL_NULL,
                                                          .model = strpool_intern_str(strings, "linear")});
}

static void write_step(struct remote_sync *s, const struct remote_machine *r, const struct clock_step *step)
{
    const struct clock_line *l = &r->line;
    struct strpool *strings = &s->im->st->strings;
    int64_t y0 = clock_line_to_host(l, step->x[0]), y1 = clock_line_to_host(l, step->x[1]);
    clock_sync_insert(s->im->st, &(struct clock_sync_row){.machine_id = r->machine,
                                                          .clock = strpool_intern_str(strings, "BOOTTIME"),
                                                          .start_ts = to_trace(s, r, y0),
                                                          .end_ts = to_trace(s, r, y1),
                                                          .offset_ns = step->x[0] - y0,
                                                          .drift_ppb = 0,
                                                          .max_error_ns = clock_line_worst(l, step->x[0], step->x[1]),
                                                          .rounds = 2,
                                                          .min_rtt_ns = COL_NULL,
                                                          .step_ns = -step->by_ns,
                                                          .model = strpool_intern_str(strings, "step")});
}

/* Windows of a second and more, cut at the steps of the clock; and the steps. */
static void write_windows(struct remote_sync *s, const struct remote_machine *r)
{
    static const int64_t shortest = INT64_C(1000000000);
    const struct clock_line *l = &r->line;
    const struct clock_knot *k = l->knots.p;
    const size_t n = l->knots.n;
    size_t first = 0, step = 0;
    for (size_t i = 1; i < n; i++) {
        bool stepped = step < l->steps.n && k[i].x >= l->steps.p[step].x[1];
        size_t last = stepped ? i - 1 : i;
        if (!stepped && i + 1 < n && k[i].x - k[first].x < shortest)
            continue;
        if (last > first)
            write_window(s, r, k[first].x, k[last].x);
        first = i;
        for (; step < l->steps.n && k[i].x >= l->steps.p[step].x[1]; step++)
            write_step(s, r, &l->steps.p[step]);
    }
    if (n == 1)
        write_window(s, r, k[0].x, k[0].x);
}

static void write_constant(struct remote_sync *s, const struct remote_machine *r)
{
    struct clock_id remote = {.id = CLOCK_ID_BOOTTIME, .machine = (uint32_t)r->machine, .file = r->clock_file};
    struct clock_id host = host_clock(r);
    struct strpool *strings = &s->im->st->strings;
    int64_t value;
    if (clock_graph_convert(s->im->clocks, host, 0, remote, &value) != 0)
        return;
    clock_sync_insert(s->im->st, &(struct clock_sync_row){.machine_id = r->machine,
                                                          .clock = strpool_intern_str(strings, "BOOTTIME"),
                                                          .start_ts = COL_NULL,
                                                          .end_ts = COL_NULL,
                                                          .offset_ns = value,
                                                          .drift_ppb = 0,
                                                          .max_error_ns = COL_NULL,
                                                          .rounds = (int64_t)r->rounds.n,
                                                          .min_rtt_ns = COL_NULL,
                                                          .step_ns = COL_NULL,
                                                          .model = strpool_intern_str(strings, "constant")});
}

/* Rows of clock_snapshot for the packets of a machine. */
static void write_snapshots(struct remote_sync *s, const struct remote_machine *r)
{
    struct clock_id remote = {.machine = (uint32_t)r->machine, .file = r->clock_file};
    struct clock_rounds packet = {0};
    for (size_t i = 0; i < r->rounds.n; i++) {
        const struct clock_round *round = &r->rounds.p[i];
        if (!round->extra && !vec_push(&packet, *round))
            s->im->failed = true;
        if (i + 1 == r->rounds.n || round[1].first) {
            remote_sync_rows(s->im, remote, host_clock(r), &packet);
            vec_clear(&packet);
        }
    }
    vec_free(&packet);
}

void remote_sync_finish(struct remote_sync *s)
{
    struct stats *st = &s->im->st->stats;
    for (size_t i = 0; i < s->machines.n; i++) {
        const struct remote_machine *r = s->machines.p[i];
        if (r->machine <= 0)
            continue;
        uint32_t machine = (uint32_t)r->machine;
        if (r->linear) {
            write_windows(s, r);
            write_snapshots(s, r);
        } else if (r->synced)
            write_constant(s, r);
        else if (r->raw_id && (r->raw_id <= UINT32_MAX || r->packets) && !s->im->machines.p[machine]->clock_related)
            stats_set_idx(st, machine, STAT_clock_sync_missing, (int32_t)machine, 1);
        if (r->line.rejected)
            stats_set_idx(st, machine, STAT_clock_sync_rounds_rejected, (int32_t)machine, r->line.rejected);
        if (r->linear && r->line.steps.n)
            stats_set_idx(st, machine, STAT_clock_sync_steps, (int32_t)machine, (int64_t)r->line.steps.n);
        if (r->line.splits)
            stats_set_idx(st, machine, STAT_clock_sync_windows_split, (int32_t)machine, r->line.splits);
    }
}

uint32_t remote_sync_host(const struct remote_sync *s, uint32_t machine)
{
    for (size_t i = 0; i < s->machines.n; i++)
        if (s->machines.p[i]->machine == machine && s->machines.p[i]->synced)
            return s->machines.p[i]->host;
    return machine;
}

bool remote_sync_error(const struct remote_sync *s, uint32_t machine, int64_t trace_ns, int64_t *error_ns)
{
    *error_ns = 0;
    if (!machine)
        return machine < (s->im->clocks_restored ? s->im->clock_files.n : s->im->machines.n);
    for (size_t i = 0; i < s->machines.n; i++) {
        const struct remote_machine *r = s->machines.p[i];
        int64_t host;
        if (r->machine != machine || !r->linear)
            continue;
        if (clock_graph_from_trace_time(s->im->clocks, trace_ns, host_clock(r), &host) != 0)
            return false;
        *error_ns = clock_line_error(&r->line, clock_line_to_remote(&r->line, host));
        return true;
    }
    return false;
}
