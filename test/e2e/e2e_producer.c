/* A producer for tests: numbered packets of random sizes on several sequences, with a ledger of what was written.
 *
 *     e2e_producer --packets N [--writers W] [--max-size B] [--policy drop|stall] [--shm KB] [--page KB] [--seed S]
 *                  [--pause-us U] [--flush-every K] [--stall-ms M] [--source NAME] [--hold] [--follow] [--where]
 * [--times]
 *
 * Each packet: {8 timestamp, 900 {1 "<writer> <number> <padding>"}}. On the end one line a writer: "writer W packets N
 * dropped D chunks C marks M". --hold waits for the end of the session before it leaves; --stall-ms sleeps now and then
 * in the middle; --open-ms keeps each packet open for so long. --follow: when the recording ends or the connection is
 * lost, goes on with the next one. --where says of each packet "packet W N B E": it begins in the writer's chunk B and
 * ends in E. --times says of each packet that was written "wrote W N T" at once, T its timestamp: the truth about a
 * producer that is killed. --ledger is --times of what is written while somebody records, and nothing is written else.
 */
#include "meridian/producer.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct options {
    unsigned long packets, writers, max_size, shm_kb, page_kb, seed, pause_us, flush_every, stall_ms, open_ms;
    int policy;
    const char *source;
    bool hold, follow, where, times, ledger;
};

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The chunk a writer is in: chunks are numbered from 0. */
static unsigned long long chunk_of(const struct mrd_writer *w)
{
    return mrd_writer_get_stats(w).chunks;
}

static void write_packet(struct mrd_writer *w, unsigned long writer, unsigned long number, size_t size,
                         const struct options *o)
{
    static char text[1 << 20];
    int n = snprintf(text, sizeof text, "%lu %lu ", writer, number);
    size_t len = (size_t)n < size && size < sizeof text ? size : (size_t)n;
    memset(text + n, 'a' + (int)(number % 26), len - (size_t)n);
    mrd_packet_begin(w);
    unsigned long long begins = chunk_of(w);
    uint64_t now = now_ns();
    mrd_put_varint(w, 8, now);
    mrd_message_begin(w, 900);
    mrd_put_bytes(w, 1, text, len);
    mrd_message_end(w);
    if (o->open_ms)
        usleep((useconds_t)o->open_ms * 1000);
    unsigned long long ends = chunk_of(w); /* before the end: then the library may hand the chunk over */
    mrd_packet_end(w);
    if (o->times && (!o->ledger || mrd_writer_active(w)))
        dprintf(STDOUT_FILENO, "wrote %lu %lu %llu\n", writer, number, (unsigned long long)now);
    if (o->where)
        printf("packet %lu %lu %llu %llu\n", writer, number, begins, ends);
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option options[] = {
        {"packets", 1, NULL, 'n'}, {"writers", 1, NULL, 'w'},     {"max-size", 1, NULL, 'm'},
        {"policy", 1, NULL, 'p'},  {"shm", 1, NULL, 's'},         {"page", 1, NULL, 'g'},
        {"seed", 1, NULL, 'r'},    {"pause-us", 1, NULL, 'u'},    {"hold", 0, NULL, 'h'},
        {"follow", 0, NULL, 'o'},  {"flush-every", 1, NULL, 'f'}, {"stall-ms", 1, NULL, 'l'},
        {"source", 1, NULL, 'd'},  {"where", 0, NULL, 'e'},       {"times", 0, NULL, 't'},
        {"ledger", 0, NULL, 'L'},  {"open-ms", 1, NULL, 'O'},     {0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        unsigned long v = optarg ? strtoul(optarg, NULL, 10) : 0;
        switch (c) {
        case 'n':
            o->packets = v;
            break;
        case 'w':
            o->writers = v;
            break;
        case 'm':
            o->max_size = v;
            break;
        case 'p':
            o->policy = strcmp(optarg, "stall") == 0 ? MRD_STALL_THEN_DROP : MRD_DROP;
            break;
        case 's':
            o->shm_kb = v;
            break;
        case 'g':
            o->page_kb = v;
            break;
        case 'r':
            o->seed = v;
            break;
        case 'u':
            o->pause_us = v;
            break;
        case 'f':
            o->flush_every = v;
            break;
        case 'l':
            o->stall_ms = v;
            break;
        case 'd':
            o->source = optarg;
            break;
        case 'e':
            o->where = true;
            break;
        case 't':
            o->times = true;
            break;
        case 'O':
            o->open_ms = v;
            break;
        case 'L':
            o->ledger = o->times = true;
            break;
        case 'h':
            o->hold = true;
            break;
        case 'o':
            o->follow = true;
            break;
        default:
            return 1;
        }
    }
    return 0;
}

static void open_writers(struct mrd_writer **writers, unsigned long n, struct mrd_data_source *ds)
{
    for (unsigned long i = 0; i < n; i++) {
        if (writers[i])
            mrd_writer_close(writers[i]);
        writers[i] = mrd_writer_open(ds);
    }
}

int main(int argc, char **argv)
{
    struct options o = {.packets = 1000,
                        .writers = 1,
                        .max_size = 100,
                        .seed = 1,
                        .policy = MRD_STALL_THEN_DROP,
                        .source = "e2e.source"};
    if (parse(argc, argv, &o))
        return 2;
    struct mrd_producer *p =
        mrd_producer_open(&(struct mrd_producer_options){.name = "e2e.producer",
                                                         .shm_size_bytes = (uint32_t)o.shm_kb * 1024,
                                                         .page_size_bytes = (uint32_t)o.page_kb * 1024});
    struct mrd_data_source *ds =
        p ? mrd_data_source_register(p, &(struct mrd_data_source_options){.name = o.source, .policy = o.policy}) : NULL;
    if (!ds || !mrd_data_source_wait_started(ds, 30000)) {
        fprintf(stderr, "e2e_producer: nobody records\n");
        mrd_producer_close(p);
        return 1;
    }
    unsigned seed = (unsigned)o.seed;
    struct mrd_writer *writers[64] = {0};
    unsigned long next[64] = {0};
    if (o.writers > 64)
        return 2;
    open_writers(writers, o.writers, ds);
    for (unsigned long i = 0; i < o.packets; i++) {
        unsigned long k = (unsigned long)rand_r(&seed) % o.writers;
        if (o.follow && !mrd_data_source_instances(ds) && mrd_data_source_wait_started(ds, 30000))
            open_writers(writers, o.writers, ds);
        size_t size = 8 + (size_t)rand_r(&seed) % o.max_size;
        if (rand_r(&seed) % 50 == 0)
            size *= 20;
        if (!writers[k])
            continue;
        if (o.ledger && !mrd_writer_active(writers[k])) {
            if (!mrd_data_source_instances(ds))
                break;
            usleep(1000);
            continue;
        }
        write_packet(writers[k], k, next[k]++, size, &o);
        if (o.flush_every && (unsigned long)rand_r(&seed) % o.flush_every == 0)
            mrd_writer_flush(writers[k]);
        if (o.stall_ms && rand_r(&seed) % 500 == 0)
            usleep((useconds_t)o.stall_ms * 1000);
        if (o.pause_us)
            usleep((useconds_t)o.pause_us);
    }
    for (unsigned long round = 0; round <= o.writers && !o.hold; round++) { /* each makes room for more */
        for (unsigned long i = 0; i < o.writers; i++)
            if (writers[i])
                mrd_writer_flush(writers[i]);
        if (!mrd_producer_sync(p, 5000))
            break;
    }
    for (unsigned long i = 0; i < o.writers; i++) {
        if (!writers[i])
            continue;
        struct mrd_writer_stats s = mrd_writer_get_stats(writers[i]);
        printf("writer %lu packets %llu dropped %llu chunks %llu marks %llu\n", i, (unsigned long long)s.packets,
               (unsigned long long)s.dropped, (unsigned long long)s.chunks, (unsigned long long)s.loss_marks);
    }
    fflush(stdout);
    while (o.hold && mrd_data_source_instances(ds))
        usleep(10000);
    for (unsigned long i = 0; i < o.writers; i++)
        mrd_writer_close(writers[i]);
    mrd_producer_sync(p, 5000);
    mrd_producer_close(p);
    return 0;
}
