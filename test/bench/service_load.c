/* Producers for bench_service.py: each writes into shared memory of its own and hands over what it wrote.
 *
 *     service_load PRODUCERS COMMITS BYTES PAGE_KB
 *
 * Records as data source "load". COMMITS commits in all, each with packets of together BYTES bytes; at most 8 of a
 * producer are unanswered. Says "ready", waits for a line, works, says "commits N bytes B seconds S", waits again. */
#include "capture/ipc/ports.h"
#include "capture/shm/producer_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PACKET     200u /* bytes of a packet, about */
#define PER_ANSWER 8

struct load;

struct one {
    struct load *all;
    struct producer *producer;
    struct trace_writer *writer;
    unsigned left; /* commits */
};

struct load {
    uv_loop_t loop;
    struct one *producers;
    unsigned n, started, busy;
    unsigned bytes_per_commit;
    uint64_t bytes, commits;
};

static void write_one(struct one *p)
{
    static const char text[PACKET] = "text";
    for (unsigned n = 0; n < p->all->bytes_per_commit; n += PACKET) {
        trace_writer_begin_packet(p->writer);
        trace_writer_varint(p->writer, 8, 1);
        trace_writer_bytes(p->writer, 900, text, PACKET - 16);
        p->all->bytes += trace_writer_packet_bytes(p->writer);
        trace_writer_end_packet(p->writer);
    }
    trace_writer_flush(p->writer);
    producer_commit_now(p->producer);
    p->all->commits++;
    p->left--;
}

static void work(void *ctx)
{
    struct one *p = ctx;
    if (!p->left) {
        if (--p->all->busy == 0)
            uv_stop(&p->all->loop);
        return;
    }
    for (int i = 0; i < PER_ANSWER && p->left; i++)
        write_one(p);
    producer_sync(p->producer, work, p);
}

static void on_start(void *ctx, uint64_t instance, const Mrd__DataSourceConfig *config)
{
    struct one *p = ctx;
    (void)instance;
    p->writer = producer_new_writer(p->producer, (uint16_t)config->target_buffer, SHM_STALL_THEN_ABORT);
    if (p->writer && ++p->all->started == p->all->n)
        uv_stop(&p->all->loop);
}

static void on_disconnected(void *ctx, const char *why)
{
    (void)ctx;
    fprintf(stderr, "service_load: %s\n", why);
    exit(1);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void wait_for_a_line(void)
{
    char line[16];
    if (!fgets(line, sizeof line, stdin))
        exit(1);
}

int main(int argc, char **argv)
{
    static const struct producer_ops ops = {.start = on_start, .disconnected = on_disconnected};
    struct load l = {0};
    struct error err = {0};
    if (argc != 5) {
        fprintf(stderr, "Usage: service_load PRODUCERS COMMITS BYTES PAGE_KB\n");
        return 2;
    }
    l.n = l.busy = (unsigned)atoi(argv[1]);
    unsigned commits = (unsigned)atoi(argv[2]), page_kb = (unsigned)atoi(argv[4]);
    l.bytes_per_commit = (unsigned)atoi(argv[3]);
    l.producers = calloc(l.n, sizeof *l.producers);
    if (!l.n || !l.producers)
        return 2;
    uv_loop_init(&l.loop);
    for (unsigned i = 0; i < l.n; i++) {
        struct one *p = &l.producers[i];
        *p = (struct one){.all = &l, .left = commits / l.n};
        struct producer_options o = {
            .name = "load", .page_size_hint = page_kb * 1024, .shm_size_hint = page_kb * 16384};
        if (producer_open(&p->producer, &l.loop, &o, &ops, p, &err) != 0 ||
            producer_register(p->producer, &(struct producer_data_source){.name = "load"}, &err) != 0) {
            fprintf(stderr, "service_load: %s\n", err.text);
            return 1;
        }
    }
    uv_run(&l.loop, UV_RUN_DEFAULT);
    puts("ready");
    fflush(stdout);
    wait_for_a_line();
    double begin = now();
    for (unsigned i = 0; i < l.n; i++)
        work(&l.producers[i]);
    uv_run(&l.loop, UV_RUN_DEFAULT);
    printf("commits %llu bytes %llu seconds %.6f\n", (unsigned long long)l.commits, (unsigned long long)l.bytes,
           now() - begin);
    fflush(stdout);
    wait_for_a_line();
    return 0;
}
