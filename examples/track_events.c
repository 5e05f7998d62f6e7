/* Emits track events: a process that works in slices, as an application would record itself.
 *
 * Start a session with `data_sources { config { name: "example.track_events" } }`, then run
 *     track_events [SLICES] [MICROSECONDS_BETWEEN]
 * and look at the slices with: select ts, dur, name from slice. */
#include "meridian/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Field numbers of TracePacket, TrackEvent, TrackDescriptor, ProcessDescriptor. */
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK_EVENT = 11,
    PACKET_TRACK_DESCRIPTOR = 60,
    EVENT_TYPE = 9,
    EVENT_TRACK_UUID = 11,
    EVENT_CATEGORIES = 22,
    EVENT_NAME = 23,
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2 };

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void describe_track(struct mrd_writer *w, uint64_t uuid)
{
    mrd_packet_begin(w);
    mrd_put_varint(w, PACKET_TIMESTAMP, now_ns());
    mrd_put_varint(w, PACKET_SEQUENCE_FLAGS, 1); /* SEQ_INCREMENTAL_STATE_CLEARED */
    mrd_message_begin(w, PACKET_TRACK_DESCRIPTOR);
    mrd_put_varint(w, TRACK_UUID, uuid);
    mrd_message_begin(w, TRACK_PROCESS);
    mrd_put_varint(w, PROCESS_PID, (uint64_t)getpid());
    mrd_put_string(w, PROCESS_NAME, "track_events example");
    mrd_message_end(w);
    mrd_message_end(w);
    mrd_packet_end(w);
}

static void event(struct mrd_writer *w, uint64_t uuid, int type, const char *name)
{
    mrd_packet_begin(w);
    mrd_put_varint(w, PACKET_TIMESTAMP, now_ns());
    mrd_message_begin(w, PACKET_TRACK_EVENT);
    mrd_put_varint(w, EVENT_TYPE, (uint64_t)type);
    mrd_put_varint(w, EVENT_TRACK_UUID, uuid);
    if (type == SLICE_BEGIN) {
        mrd_put_string(w, EVENT_CATEGORIES, "example");
        mrd_put_string(w, EVENT_NAME, name);
    }
    mrd_message_end(w);
    mrd_packet_end(w);
}

int main(int argc, char **argv)
{
    unsigned long slices = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    unsigned long pause_us = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
    struct mrd_producer *p = mrd_producer_open(&(struct mrd_producer_options){.name = "example.track_events"});
    struct mrd_data_source *ds =
        p ? mrd_data_source_register(
                p, &(struct mrd_data_source_options){.name = "example.track_events", .policy = MRD_STALL_THEN_DROP})
          : NULL;
    if (!ds || !mrd_data_source_wait_started(ds, 60000)) {
        fprintf(stderr, "nobody records example.track_events\n");
        mrd_producer_close(p);
        return 1;
    }
    struct mrd_writer *w = mrd_writer_open(ds);
    if (!w)
        return 1;
    uint64_t track = (uint64_t)getpid() << 32 | 1; /* one of its own in the whole trace */
    describe_track(w, track);
    for (unsigned long i = 0; i < slices && mrd_writer_active(w); i++) {
        char name[32];
        snprintf(name, sizeof name, "work %lu", i);
        event(w, track, SLICE_BEGIN, name);
        if (pause_us)
            usleep((useconds_t)pause_us);
        event(w, track, SLICE_END, NULL);
    }
    struct mrd_writer_stats stats = mrd_writer_get_stats(w);
    mrd_writer_close(w);
    mrd_producer_sync(p, 5000);
    mrd_producer_close(p);
    printf("%llu packets, %llu dropped\n", (unsigned long long)stats.packets, (unsigned long long)stats.dropped);
    return 0;
}
