/* While it records: the status line, and what the service tells. */
#include "capture/client/record_private.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"
#include "wire/recording_problem.h"

#include <stdio.h>
#include <sys/stat.h>

static void print_status(const struct recorder *r)
{
    uint64_t s = (uv_hrtime() - r->started_ns) / 1000000000;
    if (r->reading || r->done)
        return;
    fprintf(stderr, "\r\033[K%02llu:%02llu:%02llu  %.1f MB", (unsigned long long)(s / 3600),
            (unsigned long long)(s / 60 % 60), (unsigned long long)(s % 60), (double)r->recorded_bytes / 1e6);
    fflush(stderr);
}

static void on_stats(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    (void)has_more;
    struct pb_field f, b;
    if (!success || !pb_find(reply, GET_TRACE_STATS_RESPONSE_TRACE_STATS, &f))
        return;
    uint64_t bytes = 0, overwritten = 0;
    for (struct pb_cursor c = pb_sub(&f); pb_next(&c, &f);) {
        for (struct pb_cursor m = pb_sub(&f); f.id == TRACE_STATS_BUFFER_STATS && pb_next(&m, &b);) {
            bytes += b.id == TRACE_STATS_BUFFER_STATS_BYTES_WRITTEN ? pb_u64(&b) : 0;
            overwritten += b.id == TRACE_STATS_BUFFER_STATS_BYTES_OVERWRITTEN ? pb_u64(&b) : 0;
        }
    }
    r->recorded_bytes = bytes - overwritten;
    print_status(r);
}

void record_on_status(uv_timer_t *t)
{
    struct recorder *r = t->data;
    struct stat st;
    if (!r->service_writes) {
        ipc_client_invoke(r->client, CONSUMER_GET_TRACE_STATS, slice_of(NULL, 0), -1, on_stats, r);
        return;
    }
    if (r->out.fd >= 0 && fstat(r->out.fd, &st) == 0)
        r->recorded_bytes = (uint64_t)st.st_size;
    print_status(r);
}

static void on_announce(uv_timer_t *t)
{
    struct recorder *r = t->data;
    if (record_on_terminal(r))
        fprintf(stderr, "\r\033[K");
    report_print(&r->report);
}

static void on_event(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct recorder *r = ctx;
    struct pb_field f;
    (void)has_more;
    Mrd__ObserveEventsResponse *m = success ? mrd__observe_events_response__unpack(NULL, reply.len, reply.p) : NULL;
    if (!m)
        return;
    if (pb_find(reply, OBSERVE_EVENTS_RESPONSE_REPORT, &f)) {
        report_take(&r->report, pb_bytes(&f));
        if (!r->done && !r->stopping && !uv_is_active((uv_handle_t *)&r->announce))
            uv_timer_start(&r->announce, on_announce, REPORT_DELAY_MS, 0);
    }
    for (size_t i = 0; m->events && i < m->events->n_instance_state_changes; i++)
        report_instance(&r->report, m->events->instance_state_changes[i]);
    if (m->events && m->events->all_data_sources_started)
        record_notify(r, report_nothing_started(&r->report) ? 1 : 0);
    if (m->events && m->events->clone_trigger_hit)
        record_start_clone(r, m->events->clone_trigger_hit);
    mrd__observe_events_response__free_unpacked(m, NULL);
}

void record_observe(struct recorder *r, unsigned bits)
{
    struct pb_writer w = {0};
    for (unsigned b = 1; b <= bits; b <<= 1)
        if (bits & b)
            pb_put_varint(&w, OBSERVE_EVENTS_REQUEST_EVENTS_TO_OBSERVE, b);
    if (!w.failed && ipc_client_has_method(r->client, CONSUMER_OBSERVE_EVENTS)) /* old services have it not */
        record_call(r, CONSUMER_OBSERVE_EVENTS, pb_written(&w), -1, on_event);
    pb_writer_free(&w);
}
