/* Measures linux.ftrace alone: CPU per million events and bytes per event, packets going nowhere.
 *
 *     bench_ftrace [-c 0|1] [-m read|map] [-d SECONDS] [-p DRAIN_MS] [-b BUFFER_KB] EVENT...  -- COMMAND ...
 *
 * The command runs while recording (without one: for SECONDS). Needs root and tracefs; uses an instance of its own. */
#include "base/alloc.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/ftrace/ftrace_source.h"
#include "wire/pb_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct totals {
    uint64_t packets, bytes;
    uint8_t buffer[1 << 20]; /* the copy that shared memory would be */
};

static void take(void *ctx, const struct slice *pieces, size_t n)
{
    struct totals *t = ctx;
    size_t at = t->bytes % (sizeof t->buffer / 2);
    t->packets++;
    for (size_t i = 0; i < n; i++) {
        if (at + pieces[i].len <= sizeof t->buffer)
            memcpy(t->buffer + at, pieces[i].p, pieces[i].len);
        at += pieces[i].len;
        t->bytes += pieces[i].len;
    }
}

static void say(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "%s\n", text);
}

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void on_end(uv_timer_t *t)
{
    uv_stop(t->loop);
}

static void on_exit_cb(uv_process_t *p, int64_t status, int sig)
{
    (void)status;
    (void)sig;
    uv_stop(p->loop);
}

int main(int argc, char **argv)
{
    struct pb_writer config = {0};
    struct error err = {0};
    enum ring_mode mode = RING_READ;
    unsigned seconds = 5, drain = 100, buffer = 8192, compact = 1;
    int opt;
    while ((opt = getopt(argc, argv, "+c:m:d:p:b:")) != -1) {
        switch (opt) {
        case 'c':
            compact = (unsigned)atoi(optarg);
            break;
        case 'm':
            mode = strcmp(optarg, "map") == 0 ? RING_MAPPED : RING_READ;
            break;
        case 'd':
            seconds = (unsigned)atoi(optarg);
            break;
        case 'p':
            drain = (unsigned)atoi(optarg);
            break;
        case 'b':
            buffer = (unsigned)atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    int i = optind;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++)
        pb_put_str(&config, 1, argv[i]);
    char **command = i + 1 < argc ? argv + i + 1 : NULL;
    char instance[64], run[] = "/tmp/bench-ftrace-XXXXXX";
    snprintf(instance, sizeof instance, "mrd-bench-%d", (int)getpid());
    pb_put_varint(&config, 10, buffer);
    pb_put_varint(&config, 11, drain);
    pb_put_str(&config, 25, instance);
    size_t mark = pb_begin(&config, 12);
    pb_put_varint(&config, 1, compact);
    pb_end(&config, mark);

    struct totals *totals = calloc(1, sizeof *totals);
    struct packet_sink sink = {.write = take, .ctx = totals};
    struct ftrace_source_options options = {NULL, mkdtemp(run), mode};
    struct probes_host host = {.loop = uv_default_loop(), .log = say, .ftrace = ftrace_source_create(&options)};
    struct data_source_config dsc = {.session_id = 1, .specific = pb_written(&config)};
    const struct data_source_type *type = &ftrace_data_source;
    void *state;
    if (type->setup(&host, &dsc, &sink, &state, &err) || type->start(state, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    double before = cpu_seconds();
    uint64_t begin = probes_boot_ns();
    uv_timer_t end;
    uv_timer_init(host.loop, &end);
    uv_process_t child;
    uv_process_options_t po = {.file = command ? command[0] : NULL, .args = command, .exit_cb = on_exit_cb};
    if (command ? uv_spawn(host.loop, &child, &po) : uv_timer_start(&end, on_end, seconds * 1000, 0))
        fprintf(stderr, "cannot run the command\n");
    uv_run(host.loop, UV_RUN_DEFAULT);
    type->stop(state);
    double used = cpu_seconds() - before, wall = (double)(probes_boot_ns() - begin) / 1e9;
    struct ftrace_session_counts c;
    ftrace_session_counts(state, &c);
    printf("%.2f s: %llu records on %llu pages, %llu lost, %llu events written (%.0f/s)\n", wall,
           (unsigned long long)c.records, (unsigned long long)c.pages, (unsigned long long)c.lost,
           (unsigned long long)c.bundles->events, (double)c.bundles->events / wall);
    printf("cpu %.3f s = %.3f s per million events = %.2f %% of a cpu; %.1f bytes per event, %llu bundles\n", used,
           used * 1e6 / (double)(c.records ? c.records : 1), used / wall * 100,
           (double)totals->bytes / (double)(c.records ? c.records : 1), (unsigned long long)c.bundles->bundles);
    for (int e = 0; e < FTRACE_STATUS_COUNT; e++)
        if (c.bundles->errors[e])
            printf("parse error %d: %llu times\n", e, (unsigned long long)c.bundles->errors[e]);
    type->free(state);
    rmdir(run);
    return 0;
}
