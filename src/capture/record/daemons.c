/* A service and probes of our own: start, wait, ask, end. */
#include "capture/record/daemons.h"

#include "base/u64map.h"
#include "capture/heap/heap_abi.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVICE_TIMEOUT_MS = 10000, ANSWER_TIMEOUT_MS = 2000, STOP_TIMEOUT_MS = 5000 };

int daemons_init(struct daemons *d, struct error *err)
{
    ssize_t n = readlink("/proc/self/exe", d->self, sizeof d->self - 1);
    if (n <= 0)
        return error_set_errno(err, errno, "/proc/self/exe");
    d->self[n] = 0;
    return 0;
}

static int make_directory(struct daemons *d, struct error *err)
{
    char consumer[80];
    snprintf(d->dir, sizeof d->dir, "/tmp/tracebox-record.XXXXXX");
    if (!mkdtemp(d->dir)) {
        int rc = error_set_errno(err, errno, "%s", d->dir);
        d->dir[0] = 0;
        return rc;
    }
    snprintf(consumer, sizeof consumer, "%s/consumer", d->dir);
    setenv("PERFETTO_CONSUMER_SOCK_NAME", consumer, 1);
    return 0;
}

int daemons_start_service(struct daemons *d, const char *relay_addresses, struct error *err)
{
    char producers[192], notify[32], log[96];
    int ready[2];
    int rc = make_directory(d, err);
    if (rc)
        return rc;
    if (pipe(ready) != 0)
        return error_set_errno(err, errno, "pipe");
    fcntl(ready[0], F_SETFD, FD_CLOEXEC);
    snprintf(producers, sizeof producers, "PERFETTO_PRODUCER_SOCK_NAME=%s/producer%s%s", d->dir,
             relay_addresses ? "," : "", relay_addresses ? relay_addresses : "");
    snprintf(notify, sizeof notify, "TRACED_NOTIFY_FD=%d", ready[1]);
    snprintf(log, sizeof log, "%s/traced.log", d->dir);
    char relay[] = "--enable-relay-endpoint";
    rc = child_start(
        &d->traced,
        &(struct child_options){.argv = (char *[]){d->self, (char[]){"traced"}, relay_addresses ? relay : NULL, NULL},
                                .env = (const char *[]){producers, notify, NULL},
                                .log = log},
        err);
    close(ready[1]);
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    char one = 0;
    if (!rc && (poll(&p, 1, SERVICE_TIMEOUT_MS) <= 0 || read(ready[0], &one, 1) != 1))
        rc = error_set(err, -MRD_EIO, "the service did not start; see %s", log);
    close(ready[0]);
    return rc;
}

/* Starts a producer, which logs to dir/LOG. */
static int start_producer(struct daemons *d, struct child *c, char *applet, const char *log_name, struct error *err)
{
    char producer[128], log[96];
    snprintf(producer, sizeof producer, "PERFETTO_PRODUCER_SOCK_NAME=%s/producer", d->dir);
    snprintf(log, sizeof log, "%s/%s", d->dir, log_name);
    return child_start(c,
                       &(struct child_options){.argv = (char *[]){d->self, applet, NULL},
                                               .env = (const char *[]){producer, NULL},
                                               .log = log},
                       err);
}

int daemons_start_probes(struct daemons *d, struct error *err)
{
    return start_producer(d, &d->probes, (char[]){"traced_probes"}, "probes.log", err);
}

int daemons_start_perf(struct daemons *d, struct error *err)
{
    return start_producer(d, &d->perf, (char[]){"traced_perf"}, "perf.log", err);
}

int daemons_start_heap(struct daemons *d, struct error *err)
{
    char producer[128], log[96], place[96];
    snprintf(producer, sizeof producer, "PERFETTO_PRODUCER_SOCK_NAME=%s/producer", d->dir);
    snprintf(log, sizeof log, "%s/heap.log", d->dir);
    snprintf(place, sizeof place, "%s/heap", d->dir);
    return child_start(
        &d->heap,
        &(struct child_options){.argv = (char *[]){d->self, (char[]){"heapprofd"}, (char[]){"--listen"}, place, NULL},
                                .env = (const char *[]){producer, NULL},
                                .log = log},
        err);
}

bool daemons_end_heap(struct daemons *d)
{
    int status = -1;
    if (d->heap.pid)
        kill(d->heap.pid, SIGTERM);
    for (unsigned ms = 0; !child_ended(&d->heap, &status) && ms < STOP_TIMEOUT_MS; ms += 10)
        usleep(10000);
    return status == 0;
}

int daemons_heap_env(struct daemons *d, const char **env, struct error *err)
{
    static const char *const places[] = {"",
                                         HEAP_LIBRARY_PLACE "/"}; /* beside this program, or where it is installed */
    const char *before = getenv("LD_PRELOAD"), *slash = strrchr(d->self, '/');
    char library[PATH_MAX];
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(library, sizeof library, "%.*s/%s" HEAP_LIBRARY, (int)(slash - d->self), d->self, places[i]);
        if (n >= (int)sizeof library || access(library, R_OK) != 0)
            continue;
        int len = snprintf(d->heap_env[0], sizeof d->heap_env[0], "LD_PRELOAD=%s%s%s", library,
                           before && *before ? ":" : "", before ? before : "");
        if (len >= (int)sizeof d->heap_env[0])
            return error_set(err, -MRD_ELIMIT, "LD_PRELOAD would be too long");
        snprintf(d->heap_env[1], sizeof d->heap_env[1], HEAP_SOCKET_ENV "=%s/heap", d->dir);
        env[0] = d->heap_env[0];
        env[1] = d->heap_env[1];
        return 0;
    }
    return error_set(err, -MRD_ENOTFOUND, "there is no " HEAP_LIBRARY " beside %s, nor where it is installed", d->self);
}

uint64_t daemons_perf_ms(const struct daemons *d)
{
    char path[48], text[1024];
    unsigned long user = 0, system = 0;
    if (!d->perf.pid)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)d->perf.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strrchr(text, ')'); /* the name may hold anything */
    if (at)
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    return (uint64_t)(user + system) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* The state of the service, a TracingServiceState; empty when nobody answers. */
static void query_state(const struct daemons *d, struct pb_writer *state)
{
    struct error err = {0};
    struct child c;
    char self[PATH_MAX];
    snprintf(self, sizeof self, "%s", d->self);
    if (child_start(
            &c,
            &(struct child_options){.argv = (char *[]){self, (char[]){"perfetto"}, (char[]){"--query-raw"}, NULL},
                                    .log = "/dev/null",
                                    .pipes = true},
            &err) != 0)
        return;
    for (;;) {
        char buf[4096];
        struct pollfd p = {.fd = c.out, .events = POLLIN};
        ssize_t got = poll(&p, 1, ANSWER_TIMEOUT_MS) > 0 ? read(c.out, buf, sizeof buf) : 0;
        if (got <= 0)
            break;
        pb_put_raw(state, buf, (size_t)got);
    }
    child_stop(&c, SIGTERM, 1000);
}

bool daemons_offered(const struct daemons *d, const char *data_source)
{
    struct pb_writer state = {0};
    struct pb_field f, descriptor, name;
    bool offered = false;
    query_state(d, &state);
    for (struct pb_cursor c = pb_cursor(pb_written(&state)); pb_next(&c, &f);)
        offered |= f.id == TRACING_SERVICE_STATE_DATA_SOURCES &&
                   pb_find(pb_bytes(&f), TRACING_SERVICE_STATE_DATA_SOURCE_DS_DESCRIPTOR, &descriptor) &&
                   pb_find(pb_bytes(&descriptor), DATA_SOURCE_DESCRIPTOR_NAME, &name) &&
                   slice_eq(pb_bytes(&name), slice_str(data_source));
    pb_writer_free(&state);
    return offered;
}

unsigned daemons_count_producers(const struct daemons *d)
{
    struct pb_writer state = {0};
    struct pb_field f, producer;
    struct u64map seen = {0};
    query_state(d, &state);
    for (struct pb_cursor c = pb_cursor(pb_written(&state)); pb_next(&c, &f);)
        if (f.id == TRACING_SERVICE_STATE_DATA_SOURCES &&
            pb_find(pb_bytes(&f), TRACING_SERVICE_STATE_DATA_SOURCE_PRODUCER_ID, &producer) &&
            !u64map_put(&seen, pb_u64(&producer), NULL))
            break;
    unsigned n = (unsigned)seen.n;
    u64map_free(&seen);
    pb_writer_free(&state);
    return n;
}

static void remove_file(const char *dir, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

/* The end of the service's log: the last words before a failure. */
static void show_log(const struct daemons *d)
{
    char path[96], text[2048];
    snprintf(path, sizeof path, "%s/traced.log", d->dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text, size > (off_t)sizeof text ? size - (off_t)sizeof text : 0);
    if (n > 0)
        fprintf(stderr, "record: the service said:\n%.*s", (int)n, text);
    if (fd >= 0)
        close(fd);
}

void daemons_stop(struct daemons *d, bool tell)
{
    if (!d->dir[0])
        return;
    child_stop(&d->heap, SIGTERM, 5000);
    child_stop(&d->perf, SIGTERM, 5000);
    child_stop(&d->probes, SIGTERM, 5000);
    child_stop(&d->traced, SIGTERM, 5000);
    remove_file(d->dir, "producer");
    remove_file(d->dir, "consumer");
    if (tell)
        show_log(d);
    remove_file(d->dir, "traced.log");
    remove_file(d->dir, "probes.log");
    remove_file(d->dir, "perf.log");
    remove_file(d->dir, "heap.log");
    remove_file(d->dir, "heap");
    rmdir(d->dir);
    d->dir[0] = 0;
}
