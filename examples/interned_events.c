/* Emits track events whose names are sent once and referred to by number, as large applications do it.
 *
 * What has been sent once is the sequence's incremental state. A reader that has lost a packet cannot trust it any
 * more: packets that need it say so (flag 2), and from time to time the service asks to begin anew (flag 1). Start a
 * session with data_sources { config { name: "example.interned_events" } } incremental_state_config { clear_period_ms:
 * 1000 } then run interned_events [ROUNDS] [MICROSECONDS_BETWEEN] and look at the slices with: select ts, dur, name,
 * extract_arg(arg_set_id, 'debug.round') from slice. */
#include "meridian/producer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Field numbers. */
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    DEFAULTS_TRACK_EVENT = 11,
    EVENT_DEFAULTS_TRACK = 11,
    INTERNED_CATEGORY = 1,
    INTERNED_NAME = 2,
    INTERNED_ANNOTATION_NAME = 3,
    INTERNED_IID = 1,
    INTERNED_TEXT = 2,
    EVENT_CATEGORY_IIDS = 3,
    EVENT_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    ANNOTATION_NAME_IID = 1,
    ANNOTATION_INT = 4,
    TRACK_UUID = 1,
    TRACK_THREAD = 4,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };
enum { CATEGORY = 1, ROUND = 1 };

static const char *const names[] = {"parse", "plan", "fetch", "render"};
enum { NAMES = sizeof names / sizeof *names };

/* Counts the service's requests; each sequence begins anew when it sees that there was one. */
static atomic_uint clears;

static void begin_anew(void *ctx, uint64_t instance)
{
    (void)ctx, (void)instance;
    atomic_fetch_add(&clears, 1);
}

struct sequence {
    struct mrd_writer *w;
    unsigned number;
    unsigned clears;  /* as many as it has followed */
    bool sent[NAMES]; /* since then */
    bool sent_others; /* the category, the name of the annotation */
};

static void stamp(struct mrd_writer *w, unsigned flags)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    mrd_packet_begin(w);
    mrd_put_varint(w, PACKET_TIMESTAMP, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
    mrd_put_varint(w, PACKET_SEQUENCE_FLAGS, flags);
}

/* From here on nothing counts that was sent before. The track stays known, but is told again for those who missed it.
 */
static void clear_state(struct sequence *s)
{
    uint64_t uuid = 1000 + s->number;
    char name[32];
    snprintf(name, sizeof name, "worker %u", s->number);
    memset(s->sent, 0, sizeof s->sent);
    s->sent_others = false;
    stamp(s->w, STATE_CLEARED);
    mrd_message_begin(s->w, PACKET_TRACK_DESCRIPTOR);
    mrd_put_varint(s->w, TRACK_UUID, uuid);
    mrd_message_begin(s->w, TRACK_THREAD);
    mrd_put_varint(s->w, THREAD_PID, (uint64_t)getpid());
    mrd_put_varint(s->w, THREAD_TID, (uint64_t)getpid() + s->number);
    mrd_put_string(s->w, THREAD_NAME, name);
    mrd_message_end(s->w);
    mrd_message_end(s->w);
    mrd_message_begin(s->w, PACKET_DEFAULTS); /* events that name no track are on this one */
    mrd_message_begin(s->w, DEFAULTS_TRACK_EVENT);
    mrd_put_varint(s->w, EVENT_DEFAULTS_TRACK, uuid);
    mrd_message_end(s->w);
    mrd_message_end(s->w);
    mrd_packet_end(s->w);
}

static void intern(struct mrd_writer *w, uint32_t kind, unsigned iid, const char *text)
{
    mrd_message_begin(w, kind);
    mrd_put_varint(w, INTERNED_IID, iid);
    mrd_put_string(w, INTERNED_TEXT, text);
    mrd_message_end(w);
}

/* A slice begins; what it refers to and was not sent yet goes along. */
static void begin(struct sequence *s, unsigned name, unsigned round)
{
    stamp(s->w, NEEDS_STATE);
    if (!s->sent[name] || !s->sent_others) {
        mrd_message_begin(s->w, PACKET_INTERNED_DATA);
        if (!s->sent_others) {
            intern(s->w, INTERNED_CATEGORY, CATEGORY, "example");
            intern(s->w, INTERNED_ANNOTATION_NAME, ROUND, "round");
        }
        if (!s->sent[name])
            intern(s->w, INTERNED_NAME, name + 1, names[name]);
        mrd_message_end(s->w);
        s->sent[name] = s->sent_others = true;
    }
    mrd_message_begin(s->w, PACKET_TRACK_EVENT);
    mrd_put_varint(s->w, EVENT_TYPE, SLICE_BEGIN);
    mrd_put_varint(s->w, EVENT_CATEGORY_IIDS, CATEGORY);
    mrd_put_varint(s->w, EVENT_NAME_IID, name + 1);
    mrd_message_begin(s->w, EVENT_ANNOTATIONS);
    mrd_put_varint(s->w, ANNOTATION_NAME_IID, ROUND);
    mrd_put_varint(s->w, ANNOTATION_INT, round);
    mrd_message_end(s->w);
    mrd_message_end(s->w);
    mrd_packet_end(s->w);
}

static void end(struct sequence *s)
{
    stamp(s->w, NEEDS_STATE); /* for the track */
    mrd_message_begin(s->w, PACKET_TRACK_EVENT);
    mrd_put_varint(s->w, EVENT_TYPE, SLICE_END);
    mrd_message_end(s->w);
    mrd_packet_end(s->w);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
    unsigned pause_us = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000;
    struct mrd_producer *p = mrd_producer_open(&(struct mrd_producer_options){.name = "example.interned_events"});
    struct mrd_data_source *ds =
        p ? mrd_data_source_register(p, &(struct mrd_data_source_options){.name = "example.interned_events",
                                                                          .policy = MRD_STALL_THEN_DROP,
                                                                          .clear_incremental_state = begin_anew})
          : NULL;
    if (!ds || !mrd_data_source_wait_started(ds, 60000)) {
        fprintf(stderr, "nobody records example.interned_events\n");
        mrd_producer_close(p);
        return 1;
    }
    struct sequence sequences[2];
    for (unsigned i = 0; i < 2; i++) {
        sequences[i] = (struct sequence){.w = mrd_writer_open(ds), .number = i + 1, .clears = UINT32_MAX};
        if (!sequences[i].w)
            return 1;
    }
    for (unsigned round = 0; round < rounds && mrd_writer_active(sequences[0].w); round++) {
        struct sequence *s = &sequences[round % 2];
        unsigned now = atomic_load(&clears);
        if (s->clears != now)
            clear_state(s);
        s->clears = now;
        begin(s, round / 2 % NAMES, round);
        begin(s, (round / 2 + 1) % NAMES, round);
        end(s);
        end(s);
        usleep(pause_us);
    }
    for (unsigned i = 0; i < 2; i++)
        mrd_writer_close(sequences[i].w);
    mrd_producer_sync(p, 5000);
    mrd_producer_close(p);
    return 0;
}
