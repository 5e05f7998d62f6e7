/* The bytes of a trace as an application's SDK writes it. */
#include "bench/sdk_trace.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PID = 4242,
    NAMES = 200, /* event names of the application */
    CATEGORIES = 6,
    ARG_NAMES = 24,
    MAX_OPEN = 6,
    PROCESS_UUID = 0x7000,
    ASYNC_UUID = 0x7100,
};

struct writer_sequence {
    uint64_t ts;
    uint32_t depth;
    uint32_t since_clear;
    uint64_t rng;
    bool known_name[NAMES + 1], known_category[CATEGORIES + 1], known_arg[ARG_NAMES + 1];
};

static uint64_t next(struct writer_sequence *s)
{
    s->rng ^= s->rng << 13;
    s->rng ^= s->rng >> 7;
    s->rng ^= s->rng << 17;
    return s->rng;
}

static uint64_t thread_uuid(uint32_t sequence)
{
    return 0x9000 + sequence;
}

static void head(struct pb_writer *w, const struct writer_sequence *s, uint32_t sequence, unsigned flags)
{
    pb_put_varint(w, 8, s->ts);
    pb_put_varint(w, 10, sequence);
    if (flags)
        pb_put_varint(w, 13, flags);
}

/* What a sequence says after each clear: defaults, and who it is. */
static void describe(struct pb_writer *w, struct writer_sequence *s, uint32_t sequence)
{
    head(w, s, sequence, SDK_CLEARS);
    size_t defaults = pb_begin(w, 59), event = pb_begin(w, 11);
    pb_put_varint(w, 11, thread_uuid(sequence));
    pb_end(w, event);
    pb_end(w, defaults);
    size_t track = pb_begin(w, 60);
    pb_put_varint(w, 1, thread_uuid(sequence));
    pb_put_varint(w, 5, PROCESS_UUID);
    size_t thread = pb_begin(w, 4);
    char name[32];
    snprintf(name, sizeof name, "worker-%u", sequence);
    pb_put_varint(w, 1, PID);
    pb_put_varint(w, 2, PID + sequence);
    pb_put_str(w, 5, name);
    pb_end(w, thread);
    pb_end(w, track);
    memset(s->known_name, 0, sizeof s->known_name);
    memset(s->known_category, 0, sizeof s->known_category);
    memset(s->known_arg, 0, sizeof s->known_arg);
    s->since_clear = 0;
}

static void describe_process(struct pb_writer *w, const struct writer_sequence *s, uint32_t sequence)
{
    head(w, s, sequence, 0);
    size_t track = pb_begin(w, 60);
    pb_put_varint(w, 1, PROCESS_UUID);
    size_t process = pb_begin(w, 3);
    pb_put_varint(w, 1, PID);
    pb_put_str(w, 6, "application");
    pb_end(w, process);
    pb_end(w, track);
}

static void describe_child(struct pb_writer *w, const struct writer_sequence *s, uint32_t sequence, bool counter)
{
    head(w, s, sequence, 0);
    size_t track = pb_begin(w, 60);
    pb_put_varint(w, 1, ASYNC_UUID + 2 * sequence + counter);
    pb_put_varint(w, 5, PROCESS_UUID);
    char name[32];
    snprintf(name, sizeof name, counter ? "queue-%u" : "requests-%u", sequence);
    pb_put_str(w, 2, name);
    if (counter) {
        size_t c = pb_begin(w, 8);
        pb_put_varint(w, 3, 2); /* UNIT_COUNT */
        pb_end(w, c);
    }
    pb_end(w, track);
}

static void intern(struct pb_writer *w, uint32_t field, uint32_t iid, const char *text)
{
    size_t entry = pb_begin(w, field);
    pb_put_varint(w, 1, iid);
    pb_put_str(w, 2, text);
    pb_end(w, entry);
}

static void annotation(struct pb_writer *w, uint32_t field, uint32_t name_iid, struct writer_sequence *s,
                       unsigned depth)
{
    size_t a = pb_begin(w, field);
    if (name_iid)
        pb_put_varint(w, 1, name_iid);
    switch (next(s) % (depth >= 2 ? 4 : name_iid ? 7 : 5)) {
    case 0:
        pb_put_varint(w, 4, next(s) % 1000);
        break;
    case 1:
        pb_put_varint(w, 3, next(s) % 100000);
        break;
    case 2:
        pb_put_str(w, 6, next(s) & 1 ? "https://example.org/index.html" : "cache");
        break;
    case 3:
        pb_put_double(w, 5, (double)(next(s) % 4096) / 16);
        break;
    case 4: /* an array */
        for (unsigned i = 0, n = 1 + next(s) % 3; i < n; i++)
            annotation(w, 12, 0, s, depth + 1);
        break;
    default: /* a dictionary: the names of its entries are those of this event's arguments */
        annotation(w, 11, name_iid, s, depth + 1);
        annotation(w, 11, name_iid > 1 ? name_iid - 1 : name_iid, s, depth + 1);
    }
    pb_end(w, a);
}

static unsigned event_packet(struct pb_writer *w, struct writer_sequence *s, uint32_t sequence)
{
    unsigned flags = SDK_NEEDS | SDK_EVENT;
    head(w, s, sequence, SDK_NEEDS);
    uint64_t roll = next(s) % 100;
    bool end = s->depth && (s->depth == MAX_OPEN || roll < 45), counter = !end && roll >= 92,
         instant = !end && !counter && roll >= 85;
    uint32_t name = 0, category = 0, first_arg = 0, n_args = 0;
    if (!end && !counter) {
        name = 1 + (uint32_t)(next(s) % NAMES);
        category = 1 + name % CATEGORIES;
        first_arg = 1 + name % (ARG_NAMES - 3);
        n_args = name % 4;
        bool news = !s->known_name[name] || !s->known_category[category];
        for (uint32_t i = 0; i < n_args; i++)
            news |= !s->known_arg[first_arg + i] || !s->known_arg[first_arg + i - (first_arg + i > 1)];
        if (news) {
            flags |= SDK_INTERNS;
            char text[64];
            size_t data = pb_begin(w, 12);
            if (!s->known_category[category]) {
                snprintf(text, sizeof text, "category.%u", category);
                intern(w, 1, category, text);
            }
            if (!s->known_name[name]) {
                snprintf(text, sizeof text, "Component%u::HandleMessage%u", name % 17, name);
                intern(w, 2, name, text);
            }
            for (uint32_t a = first_arg > 1 ? first_arg - 1 : 1; a < first_arg + n_args; a++) {
                if (s->known_arg[a])
                    continue;
                snprintf(text, sizeof text, "argument_%u", a);
                intern(w, 3, a, text);
                s->known_arg[a] = true;
            }
            pb_end(w, data);
            s->known_name[name] = s->known_category[category] = true;
        }
    }
    size_t event = pb_begin(w, 11);
    pb_put_varint(w, 9, end ? 2 : counter ? 4 : instant ? 3 : 1);
    if (counter) {
        pb_put_varint(w, 11, ASYNC_UUID + 2 * sequence + 1);
        pb_put_varint(w, 30, next(s) % 500);
    } else if (!end) {
        pb_put_varint(w, 3, category);
        pb_put_varint(w, 10, name);
        if (instant)
            pb_put_varint(w, 11, ASYNC_UUID + 2 * sequence);
        for (uint32_t i = 0; i < n_args; i++)
            annotation(w, 4, first_arg + i, s, 0);
        if (next(s) % 32 == 0)
            pb_put_fixed64(w, 47, next(s) % 64);
    }
    pb_end(w, event);
    s->depth += !end && !counter && !instant;
    s->depth -= end;
    s->since_clear++;
    return flags;
}

bool sdk_trace_write(const struct sdk_trace_options *o, sdk_packet_fn fn, void *ctx)
{
    struct writer_sequence *sequences = calloc(o->sequences, sizeof *sequences);
    struct pb_writer w = {0};
    bool ok = sequences != NULL;
    for (uint32_t i = 0; ok && i < o->sequences; i++) {
        struct writer_sequence *s = &sequences[i];
        *s = (struct writer_sequence){.ts = 1000000 + i, .rng = 0x9e3779b97f4a7c15u + i, .since_clear = UINT32_MAX};
    }
    for (uint64_t n = 0; ok && n < o->events; n++) {
        uint32_t sequence = (uint32_t)(n % o->sequences) + 1;
        struct writer_sequence *s = &sequences[sequence - 1];
        s->ts += 700 + next(s) % 600;
        if (s->since_clear >= o->clear_every && s->depth == 0) {
            w.n = 0;
            describe(&w, s, sequence);
            fn(ctx, pb_written(&w), sequence, SDK_CLEARS, s->ts);
            w.n = 0;
            describe_process(&w, s, sequence);
            fn(ctx, pb_written(&w), sequence, 0, s->ts);
            for (int counter = 0; counter < 2; counter++) {
                w.n = 0;
                describe_child(&w, s, sequence, counter);
                fn(ctx, pb_written(&w), sequence, 0, s->ts);
            }
        }
        w.n = 0;
        unsigned flags = event_packet(&w, s, sequence);
        ok &= !w.failed;
        fn(ctx, pb_written(&w), sequence, flags, s->ts);
    }
    pb_writer_free(&w);
    free(sequences);
    return ok;
}
