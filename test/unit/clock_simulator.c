/* Simulates clocks, networks and relays. */
#include "clock_simulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MONOTONIC_RAW = 5, BOOTTIME = 6, TAIL_STEPS = 64 };

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static double uniform(struct simulation *s)
{
    return (double)(next_random(&s->random) >> 11) / 9007199254740992.0;
}

static int64_t between(struct simulation *s, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(uniform(s) * (double)(hi - lo));
}

static void add_bend(struct sim_machine *m, int64_t at, double drift_ppb, int64_t jump_ns)
{
    if (m->n_bends < SIM_MAX_BENDS)
        m->bends[m->n_bends++] = (struct sim_bend){at, drift_ppb, jump_ns, false};
}

/* The kernel takes another clock source: it calibrates them as well as it can, and what goes by between the last
 * reading of the one and the first of the other is lost, which is little unless a hypervisor comes in between. */
static void change_source(struct simulation *s, struct sim_machine *m, int64_t at)
{
    double u = uniform(s);
    double most = s->o.source_ppb ? (double)s->o.source_ppb : uniform(s) < 0.5 ? 100000 : 1000000;
    add_bend(m, at, (uniform(s) * 2 - 1) * most, 0);
    m->bends[m->n_bends - 1].of_source = true;
    double most_lost = s->o.source_ppb ? 200000 : 20000000;
    if (m->n_pauses < SIM_MAX_PAUSES && uniform(s) < 0.5)
        m->pauses[m->n_pauses++] = (struct sim_pause){at, (int64_t)(most_lost * u * u * u * u)};
}

static int by_bend(const void *a, const void *b)
{
    const struct sim_bend *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* A few seconds, most of them a fraction of one, too; the least is what the model takes for the least step. */
static int64_t some_time(struct simulation *s)
{
    double u = uniform(s);
    return (int64_t)(4e9 * u * u * u) + SIM_LEAST_STEP_NS;
}

/* What happens to the clock of a machine; steps are at least `apart` apart: more than the model asks for. */
static void disturb(struct simulation *s, struct sim_machine *m)
{
    const struct sim_options *o = &s->o;
    const int64_t apart = o->interval_ns ? o->interval_ns * 9 : SIM_SECOND;
    /* The last comparisons come after the last step: what happens behind them nobody can know. */
    const int64_t end = o->span_ns - (o->source_ppb ? SIM_SECOND / 2 : 8 * SIM_SECOND) - 3 * o->interval_ns;
    unsigned sources = 0;
    for (int64_t t = between(s, 0, o->span_ns / 2); t < end; t += apart + between(s, 0, o->span_ns / 2)) {
        unsigned kinds = (unsigned)between(s, 0, 100);
        if (sources < o->new_sources && uniform(s) < 0.5 && m->n_bends < SIM_MAX_BENDS) {
            change_source(s, m, t);
            sources++;
        } else if (kinds < 30 && m->n_pauses < o->pauses) {
            struct sim_pause p = {t, some_time(s)};
            m->pauses[m->n_pauses++] = p;
            t += p.length_ns;
        } else if (kinds < 45 && o->jumps) {
            add_bend(m, t, 0, uniform(s) < 0.8 ? some_time(s) : between(s, 0, SIM_SMALL_STEP_NS));
        } else if (kinds < 75 && o->rate_steps) {
            add_bend(m, t, (double)between(s, -500000, 500000), 0);
        } else if (o->rate_steps) {
            double slew = (double)between(s, -10000000, 10000000);
            add_bend(m, t, slew, 0);
            t += apart + some_time(s);
            add_bend(m, t, -slew, 0);
        }
    }
}

static void make_machine(struct simulation *s, unsigned i, uint32_t raw_id, int64_t born, int64_t dies)
{
    struct sim_machine *m = &s->m[i];
    const struct sim_options *o = &s->o;
    size_t steps = (size_t)(o->span_ns / SIM_STEP_NS) + TAIL_STEPS;
    *m = (struct sim_machine){.raw_id = raw_id, .born = born, .dies = dies};
    /* A clock that starts anew shows that it counts from the boot: then it is not negative. */
    m->offset = o->offset_ns ? between(s, i && !o->reboot ? -o->offset_ns : 0, o->offset_ns) : 0;
    if (born) /* a clock that started while the machine booted */
        m->offset = -born + 7 * SIM_SECOND;
    double drift = (double)between(s, -o->drift_ppb, o->drift_ppb);
    long double ahead = 0;
    for (size_t k = 0; k < steps; k++) {
        vec_push(&m->drift, drift);
        vec_push(&m->ahead, ahead);
        double change = (double)o->wander_ppb_s * (uniform(s) * 2 - 1);
        if (o->disciplined && k % 16 == 0 && m->n_bends < SIM_MAX_BENDS / 2 && o->rate_steps) /* a poll of NTP */
            add_bend(m, (int64_t)k * SIM_STEP_NS, (uniform(s) * 2 - 1) * 3000, 0);
        if (o->disciplined)
            drift += (uniform(s) * 2 - 1) * 20;
        ahead += (long double)SIM_STEP_NS * (drift + change / 2) * 1e-9L;
        drift += change;
    }
    if ((o->pauses || o->jumps || o->rate_steps || o->new_sources) && (i == 0) == o->disturbed_host)
        disturb(s, m);
    qsort(m->bends, m->n_bends, sizeof *m->bends, by_bend);
}

/* The moment from which on a machine does something that is due at t: the end of its pause. */
static int64_t awake(const struct simulation *s, unsigned i, int64_t t)
{
    const struct sim_machine *m = &s->m[i];
    for (unsigned k = 0; k < m->n_pauses; k++)
        if (t >= m->pauses[k].at && t < m->pauses[k].at + m->pauses[k].length_ns)
            t = m->pauses[k].at + m->pauses[k].length_ns;
    return t;
}

/* How long a machine has been paused until t. */
static int64_t asleep(const struct sim_machine *m, int64_t t)
{
    int64_t slept = 0;
    for (unsigned n = 0; n < m->n_pauses && m->pauses[n].at < t; n++)
        slept += t < m->pauses[n].at + m->pauses[n].length_ns ? t - m->pauses[n].at : m->pauses[n].length_ns;
    return slept;
}

/* How far machine i's clock has been corrected until true time t, in which the machine has lived so long; `raw`: its
 * MONOTONIC_RAW. */
static long double corrected(const struct sim_machine *m, int64_t t, int64_t lived, bool raw)
{
    long double bent = 0;
    for (unsigned n = 0; n < m->n_bends && m->bends[n].at <= t; n++) {
        const struct sim_bend *b = &m->bends[n];
        if (!raw || b->of_source)
            bent += (long double)(lived - (b->at - asleep(m, b->at))) * b->drift_ppb * 1e-9L + (long double)b->jump_ns;
    }
    return bent;
}

/* How many clock sources the kernel of machine i has had until true time t. */
static unsigned sources_at(const struct simulation *s, unsigned i, int64_t t)
{
    unsigned n = 1;
    for (unsigned k = 0; k < s->m[i].n_bends && s->m[i].bends[k].at <= t; k++)
        n += s->m[i].bends[k].of_source;
    return n;
}

/* What machine i's clock shows at true time t, or its MONOTONIC_RAW, which nobody corrects. */
static int64_t read_at(const struct simulation *s, unsigned i, int64_t t, bool raw)
{
    const struct sim_machine *m = &s->m[i];
    int64_t lived = t - asleep(m, t);
    long double bent = corrected(m, t, lived, raw);
    size_t k = (size_t)(lived / SIM_STEP_NS);
    if (k + 1 >= m->drift.n)
        k = m->drift.n - 2;
    long double dt = (long double)(lived - (int64_t)k * SIM_STEP_NS);
    long double bend = (m->drift.p[k + 1] - m->drift.p[k]) / SIM_STEP_NS / 2;
    return lived + m->offset + (int64_t)floorl(m->ahead.p[k] + (m->drift.p[k] * dt + bend * dt * dt) * 1e-9L + bent);
}

static int64_t clock_at(const struct simulation *s, unsigned i, int64_t t)
{
    return read_at(s, i, t, false);
}

/* All clocks of a machine, read one after the other; now and then something comes in between. */
struct reading {
    int64_t boottime, raw;
};

static struct reading read_clocks(struct simulation *s, unsigned i, int64_t t)
{
    double between_ns = 60 - log(1 - uniform(s)) * 200;
    if (uniform(s) < 0.02)
        between_ns -= log(1 - uniform(s)) * 30000;
    return (struct reading){clock_at(s, i, t), read_at(s, i, t, true) + (int64_t)between_ns};
}

static int64_t delay(struct simulation *s, bool to_host)
{
    int64_t d = s->o.base_delay_ns + (to_host ? s->o.asymmetry_ns : 0);
    return d + (int64_t)(-log(1 - uniform(s)) * (double)s->o.jitter_ns);
}

static void put_clock(struct pb_writer *w, uint32_t id, int64_t value)
{
    size_t clock = pb_begin(w, 1);
    pb_put_varint(w, 1, id);
    pb_put_i64(w, 2, value);
    pb_end(w, clock);
}

static void put_side(struct pb_writer *w, uint32_t side, const struct reading *r, bool raw)
{
    size_t snapshot = pb_begin(w, side);
    put_clock(w, BOOTTIME, r->boottime);
    if (raw)
        put_clock(w, MONOTONIC_RAW, r->raw);
    pb_end(w, snapshot);
}

struct round {
    struct reading client;
    struct reading host;
    int64_t at;      /* true time at the host */
    unsigned period; /* of the two clock sources */
};

/* A packet of machine i that reaches the host at true time `at`; finish with end_packet(). */
static size_t begin_packet(struct simulation *s, int64_t at)
{
    vec_push(&s->packets, (struct sim_packet){.at = at, .first = pb_written(&s->scratch).len});
    return pb_begin(&s->scratch, 1);
}

static void end_packet(struct simulation *s, size_t packet)
{
    pb_end(&s->scratch, packet);
    struct sim_packet *p = vec_last(&s->packets);
    p->len = pb_written(&s->scratch).len - p->first;
}

static void write_rounds(struct simulation *s, const struct sim_machine *m, const struct round *rounds, size_t n)
{
    /* All at first, as a service that compares once; where their place tells two boots apart, before what has been
     * recorded since, as a service that reads its buffers again and again. */
    size_t packet = begin_packet(s, s->o.same_id ? rounds[0].at : INT64_MIN + 1);
    struct pb_writer *w = &s->scratch;
    pb_put_varint(w, 98, m->raw_id);
    size_t sync = pb_begin(w, 107);
    for (size_t i = 0; i < n; i++) {
        size_t round = pb_begin(w, 1);
        put_side(w, 2, &rounds[i].client, s->o.raw);
        put_side(w, 3, &rounds[i].host, s->o.raw);
        if (s->o.sources_told)
            pb_put_varint(w, 990, rounds[i].period);
        pb_end(w, round);
    }
    pb_end(w, sync);
    end_packet(s, packet);
}

/* When the relay compares next: after an exchange at regular intervals, or in the bursts of our own relay
 * (src/capture/relay/control.c); after a lost one, which costs it the connection, when it has connected again: a
 * second later. */
struct schedule {
    unsigned left; /* of a burst */
};

static int64_t next_exchange(const struct sim_options *o, struct schedule *at, bool lost)
{
    if (lost) {
        *at = (struct schedule){0};
        return SIM_SECOND;
    }
    if (o->interval_ns)
        return o->interval_ns + o->interval_ns / 1000;
    if (at->left == 0)
        at->left = 4;
    return --at->left ? SIM_SECOND / 100000 : SIM_SECOND / 8;
}

/* The relay of machine i: a ping, and when it is answered an update. */
static void run_relay(struct simulation *s, unsigned i, int64_t from, int64_t until)
{
    struct sim_machine *m = &s->m[i];
    struct schedule schedule = {0};
    VEC(struct round)
    rounds = {0};
    m->ready = until;
    for (int64_t t = from + between(s, 0, SIM_SECOND), again = t; (t = awake(s, i, t)) < until;) {
        bool lost = m->ready < until && uniform(s) * 100 < s->o.loss_percent; /* the first gets through */
        again = t;
        if (!lost || uniform(s) < 0.5) {
            int64_t arrives = awake(s, 0, t + delay(s, true));
            struct round ping = {read_clocks(s, i, t), read_clocks(s, 0, arrives), arrives,
                                 sources_at(s, i, t) + sources_at(s, 0, arrives)};
            if (!lost) {
                int64_t answered = awake(s, i, arrives + delay(s, false));
                int64_t updated = awake(s, 0, answered + delay(s, true));
                struct round update = {read_clocks(s, i, answered), read_clocks(s, 0, updated), updated,
                                       sources_at(s, i, answered) + sources_at(s, 0, updated)};
                again = awake(s, i, updated + delay(s, false));
                if (!s->o.sources_told || update.period == ping.period) { /* as our service takes them */
                    vec_push(&rounds, ping);
                    vec_push(&rounds, update);
                    m->ready = m->ready < again ? m->ready : again;
                    m->last = answered;
                }
            } else {
                vec_push(&rounds, ping);
            }
        }
        t = again + next_exchange(&s->o, &schedule, lost);
    }
    size_t step = s->o.rounds_packet ? s->o.rounds_packet : rounds.n;
    for (size_t k = 0; k < rounds.n && (k == 0 || !s->o.once); k += step)
        write_rounds(s, m, rounds.p + k, rounds.n - k < step ? rounds.n - k : step);
    vec_free(&rounds);
}

static void add_event(struct simulation *s, unsigned machine, int64_t t, int32_t cause)
{
    struct sim_event e = {machine, t, clock_at(s, 0, t), clock_at(s, machine, t), cause};
    char name[24];
    snprintf(name, sizeof name, "%zu", s->events.n);
    vec_push(&s->events, e);
    size_t packet = begin_packet(s, t);
    struct pb_writer *w = &s->scratch;
    pb_put_varint(w, 8, (uint64_t)e.local);
    pb_put_varint(w, 10, 2 + machine); /* each boot has a sequence of its own */
    pb_put_varint(w, 58, BOOTTIME);
    if (s->m[machine].raw_id)
        pb_put_varint(w, 98, s->m[machine].raw_id);
    size_t trigger = pb_begin(w, 46);
    pb_put_str(w, 1, name);
    pb_end(w, trigger);
    end_packet(s, packet);
}

/* Events that send messages: machine to machine over the host's network, cause and effect. */
static void run_events(struct simulation *s, unsigned i, int64_t from, int64_t until)
{
    for (unsigned k = 0; k < s->o.events; k++) {
        int64_t t = awake(s, i, between(s, from, until));
        if (t >= until)
            continue;
        add_event(s, i, t, -1);
        int32_t cause = (int32_t)s->events.n - 1;
        unsigned to = (unsigned)between(s, 0, s->n_machines);
        int64_t arrives = awake(s, to, t + (i ? delay(s, true) : 0) + (to ? delay(s, false) : 0));
        if (to != i && arrives > s->m[to].ready && arrives < s->m[to].dies)
            add_event(s, to, arrives, cause);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct sim_packet *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->first < y->first ? -1 : x->first > y->first;
}

/* The packets as a service writes them that drains its buffers all the time. */
static void write_trace(struct simulation *s)
{
    const uint8_t *bytes = pb_written(&s->scratch).p;
    qsort(s->packets.p, s->packets.n, sizeof *s->packets.p, by_time);
    for (size_t i = 0; i < s->packets.n; i++)
        pb_put_raw(&s->trace, bytes + s->packets.p[i].first, s->packets.p[i].len);
}

struct sim_options sim_random_options(uint64_t seed, bool disturbed)
{
    uint64_t state = seed, r = next_random(&state), q = next_random(&state);
    bool bursts = r % 4 == 0 || (disturbed && r % 2 == 0);
    struct sim_options o = {
        .seed = seed,
        .machines = 2 + (unsigned)(r >> 2) % 7,
        .span_ns = SIM_SECOND * (60 + (int64_t)(r >> 5) % 540),
        .interval_ns = SIM_SECOND * (1 + (int64_t)(r >> 15) % 30),
        .base_delay_ns = 20000 + (int64_t)(r >> 20) % 400000,
        .jitter_ns = (int64_t)(r >> 40) % 40000,
        .drift_ppb = (int64_t)(q & 0xfffffff) % 200000,
        .wander_ppb_s = (int64_t)(q >> 28) % 10, /* of each of two clocks */
        .offset_ns = seed % 3 ? INT64_C(1000000000000000) : 0,
        .loss_percent = (unsigned)(q >> 32) % 40,
        .reboot = seed % 5 == 0,
        .same_id = seed % 2 == 0,
        .events = 20,
        .rounds_packet = 1 + (unsigned)(q >> 40) % 4,
        .raw = (q >> 57) % 4 > 0,
        .sources_told = (q >> 59) % 4 > 0,
    };
    o.asymmetry_ns = o.base_delay_ns * (int64_t)((q >> 44) % 3) / 4;
    if (o.reboot && o.interval_ns > o.span_ns / 16) /* its clock repeats itself: both boots are compared some times */
        o.interval_ns = o.span_ns / 16;
    if (bursts) { /* many comparisons a second: shorter */
        o.interval_ns = 0;
        o.span_ns = SIM_SECOND * (10 + (int64_t)(r >> 5) % 20);
        o.machines = 2 + (unsigned)(r >> 2) % 3;
        o.reboot = false; /* a boot of some seconds is told from the one before by its place in the file alone */
    }
    if (disturbed) {
        o.reboot = false;
        o.loss_percent = 0; /* it makes pauses between comparisons, of which steps are to be some apart */
        o.pauses = (unsigned)(q >> 48) % 3;
        o.jumps = (q >> 50) % 2;
        o.rate_steps = (q >> 51) % 4 > 0;
        o.new_sources = o.sources_told ? (q >> 61) % 3 : 0;
        o.disciplined = (q >> 53) % 2;
        o.disturbed_host = (q >> 54) % 4 == 0; /* or the others: steps of a pair of clocks are some apart */
        o.events = 60;
    }
    return o;
}

void simulate(struct simulation *s, const struct sim_options *options)
{
    *s = (struct simulation){.o = *options, .random = options->seed * 0x2545f4914f6cdd1d + 1};
    s->n_machines = options->machines;
    for (unsigned i = 0; i < s->n_machines; i++)
        make_machine(s, i, i ? 1000 + i : 0, 0, options->span_ns);
    if (options->reboot) { /* machine 1 comes back, as another when its id is that of the boot */
        s->m[1].dies = options->span_ns / 2;
        make_machine(s, s->n_machines++, options->same_id ? s->m[1].raw_id : 5000, s->m[1].dies + 8 * SIM_SECOND,
                     options->span_ns);
    }
    /* The host speaks first, and says which clock the trace is in. */
    size_t packet = begin_packet(s, INT64_MIN);
    size_t snapshot = pb_begin(&s->scratch, 6);
    size_t clock = pb_begin(&s->scratch, 1);
    pb_put_varint(&s->scratch, 1, BOOTTIME);
    pb_put_i64(&s->scratch, 2, clock_at(s, 0, 0));
    pb_end(&s->scratch, clock);
    pb_put_varint(&s->scratch, 2, BOOTTIME);
    pb_end(&s->scratch, snapshot);
    end_packet(s, packet);
    for (unsigned i = 1; i < s->n_machines; i++)
        run_relay(s, i, s->m[i].born, s->m[i].dies);
    for (unsigned i = 0; i < s->n_machines; i++)
        run_events(s, i, s->m[i].ready, s->m[i].dies);
    write_trace(s);
}

void simulation_free(struct simulation *s)
{
    for (unsigned i = 0; i < s->n_machines; i++) {
        vec_free(&s->m[i].drift);
        vec_free(&s->m[i].ahead);
    }
    vec_free(&s->events);
    vec_free(&s->packets);
    pb_writer_free(&s->scratch);
    pb_writer_free(&s->trace);
}
