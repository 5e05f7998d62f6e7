/* --query: asks the service who is connected, and prints it. */
#include "base/alloc.h"
#include "base/vec.h"
#include "capture/client/perfetto.h"
#include "capture/ipc/addr.h"
#include "capture/ipc/client.h"
#include "schema/service.pb-c.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct question {
    uv_loop_t *loop;
    struct ipc_client *client;
    uv_timer_t timeout;
    struct pb_writer state; /* the parts one after the other: protobuf merges them */
    bool failed, done;
};

static void on_reply(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct question *q = ctx;
    struct pb_field f;
    if (success && pb_find(reply, QUERY_SERVICE_STATE_RESPONSE_SERVICE_STATE, &f))
        pb_put_raw(&q->state, f.p, (size_t)f.u);
    if (has_more)
        return;
    q->failed = !success;
    q->done = true;
    uv_stop(q->loop);
}

static void on_bound(void *ctx)
{
    struct question *q = ctx;
    static const uint8_t all[] = {QUERY_SERVICE_STATE_REQUEST_SESSIONS_ONLY << 3, 0};
    if (!ipc_client_invoke(q->client, CONSUMER_QUERY_SERVICE_STATE, slice_of(all, sizeof all), -1, on_reply, q)) {
        q->failed = q->done = true;
        uv_stop(q->loop);
    }
}

static void on_disconnected(void *ctx, const char *why)
{
    struct question *q = ctx;
    fprintf(stderr, "perfetto: cannot ask the service: %s\n", why);
    q->failed = q->done = true;
    uv_stop(q->loop);
}

static void on_timeout(uv_timer_t *t)
{
    struct question *q = t->data;
    fprintf(stderr, "perfetto: timed out\n");
    q->failed = true;
    uv_stop(q->loop);
}

/* Names come from other processes: what is not printable must not reach the terminal. */
static char *text(char *s)
{
    static char none[1];
    for (char *c = s; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return s ? s : none;
}

static const char *machine(const Mrd__TracingServiceState__Producer *p, char buf[24])
{
    if (!p->machine_id)
        return "(host)";
    if (p->machine_name && *p->machine_name)
        return text(p->machine_name);
    snprintf(buf, 24, "0x%x", p->machine_id);
    return buf;
}

static const Mrd__TracingServiceState__Producer *producer_of(const Mrd__TracingServiceState *s, int32_t id)
{
    for (size_t i = 0; i < s->n_producers; i++)
        if (s->producers[i]->id == id)
            return s->producers[i];
    return NULL;
}

static void print_details(const Mrd__DataSourceDescriptor *d, bool all)
{
    const Mrd__FtraceDescriptor *f = d->ftrace_descriptor;
    const Mrd__TrackEventDescriptor *t = d->track_event_descriptor;
    size_t n = t ? t->n_available_categories : 0, max = all ? n : 3;
    for (size_t i = 0; i < n && i < max; i++)
        printf("%s%s", i ? "," : "", text(t->available_categories[i]->name));
    n = f ? f->n_atrace_categories : 0;
    max = all ? n : 3;
    for (size_t i = 0; i < n && i < max; i++)
        printf("%s%s", i ? "," : "", text(f->atrace_categories[i]->name));
}

static void print_state(const Mrd__TracingServiceState *s, bool all)
{
    char buf[24], when[32];
    bool machines = false;
    for (size_t i = 0; i < s->n_producers; i++)
        machines |= s->producers[i]->machine_id != 0;
    printf("PRODUCER PROCESSES CONNECTED:\n\n%-10s %-10s %-10s %-10s ", "ID", "PID", "UID", "FLAGS");
    printf(machines ? "%-16s %-32s %s\n" : "%s%-32s %s\n", machines ? "MACHINE" : "", "NAME", "SDK");
    for (size_t i = 0; i < s->n_producers; i++) {
        const Mrd__TracingServiceState__Producer *p = s->producers[i];
        printf("%-10d %-10d %-10d %-10s ", p->id, p->pid, p->uid, p->frozen ? "frozen" : "");
        if (machines)
            printf("%-16s ", machine(p, buf));
        printf("%-32s %s\n", text(p->name), text(p->sdk_version));
    }
    printf("\nDATA SOURCES REGISTERED:\n\n%-40s %-40s ", "NAME", "PRODUCER");
    printf(machines ? "%-16s %s\n" : "%s%s\n", machines ? "MACHINE" : "", "DETAILS");
    for (size_t i = 0; i < s->n_data_sources; i++) {
        const Mrd__TracingServiceState__DataSource *d = s->data_sources[i];
        const Mrd__TracingServiceState__Producer *p = producer_of(s, d->producer_id);
        char who[96];
        if (!d->ds_descriptor)
            continue;
        snprintf(who, sizeof who, "%.64s (%d)", p ? text(p->name) : "", d->producer_id);
        printf("%-40s %-40s ", text(d->ds_descriptor->name), who);
        if (machines)
            printf("%-16s ", p ? machine(p, buf) : "");
        print_details(d->ds_descriptor, all);
        printf("\n");
    }
    printf("\nTRACING SESSIONS:\n\n%-10s %-10s %-20s %-10s %-12s %-10s %s\n", "ID", "UID", "STATE", "BUF (#) KB",
           "DURATION S", "#DS", "STARTED  NAME");
    for (size_t i = 0; i < s->n_tracing_sessions; i++) {
        const Mrd__TracingServiceState__TracingSession *t = s->tracing_sessions[i];
        uint64_t kb = 0;
        char buffers[32];
        for (size_t k = 0; k < t->n_buffer_size_kb; k++)
            kb += t->buffer_size_kb[k];
        snprintf(buffers, sizeof buffers, "(%zu) %llu", t->n_buffer_size_kb, (unsigned long long)kb);
        time_t secs = (time_t)(t->start_realtime_ns / 1000000000);
        struct tm tm;
        snprintf(when, sizeof when, "-");
        if (secs && localtime_r(&secs, &tm))
            strftime(when, sizeof when, "%F %T", &tm);
        printf("%-10llu %-10d %-20s %-10s %-12u %-10u %s  %s\n", (unsigned long long)t->id, t->consumer_uid,
               text(t->state), buffers, t->duration_ms / 1000, t->num_data_sources, when, text(t->unique_session_name));
    }
    printf("\nService: %s, %d sessions, %d recording\n", text(s->tracing_service_version), s->num_sessions,
           s->num_sessions_started);
}

static bool ask(struct question *q)
{
    static const struct ipc_client_ops ops = {.bound = on_bound, .disconnected = on_disconnected};
    struct error err = {0};
    uv_loop_t loop;
    uv_loop_init(&loop);
    q->loop = &loop;
    uv_timer_init(&loop, &q->timeout);
    q->timeout.data = q;
    if (ipc_client_open(&q->client, &loop, ipc_consumer_socket(), &ipc_consumer_port, NULL, &ops, q, &err) != 0) {
        fprintf(stderr, "perfetto: %s" NO_SERVICE_HINT "\n", err.text);
        q->failed = true;
    } else {
        uv_timer_start(&q->timeout, on_timeout, 10000, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    ipc_client_close(q->client);
    uv_close((uv_handle_t *)&q->timeout, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return !q->failed && !q->state.failed;
}

int perfetto_query(const struct perfetto_options *o)
{
    struct question q = {0};
    int code = EXIT_FAILED;
    if (ask(&q)) {
        if (o->query_raw) {
            code = fwrite(q.state.p, 1, q.state.n, stdout) == q.state.n ? EXIT_OK : EXIT_FAILED;
        } else {
            Mrd__TracingServiceState *s = mrd__tracing_service_state__unpack(NULL, q.state.n, q.state.p);
            if (s) {
                print_state(s, o->query_long);
                mrd__tracing_service_state__free_unpacked(s, NULL);
                code = EXIT_OK;
            }
        }
    }
    pb_writer_free(&q.state);
    return code;
}
