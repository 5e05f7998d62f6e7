/* The data source perfetto.metatrace: what this recorder itself spends its time on. */
#include "capture/probes/common/metatrace.h"

#include "base/alloc.h"
#include "capture/probes/common/data_source.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <unistd.h>

static struct metatrace_record *next_record(struct metatrace *m)
{
    return &m->ring[m->next++ % METATRACE_RING];
}

void metatrace_end(struct metatrace *m, struct metatrace_span span, const char *name)
{
    if (!span.begin_ns || !m->users)
        return;
    *next_record(m) = (struct metatrace_record){
        .name = name, .begin_ns = span.begin_ns, .duration_ns = probes_boot_ns() - span.begin_ns};
}

void metatrace_counter(struct metatrace *m, const char *name, int32_t value)
{
    if (m && m->users)
        *next_record(m) =
            (struct metatrace_record){.name = name, .begin_ns = probes_boot_ns(), .value = value, .is_counter = true};
}

struct metatrace_session {
    struct metatrace *trace;
    struct packet_sink sink;
    uint64_t read; /* records written out so far */
    bool started;
};

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    (void)config;
    struct metatrace_session *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for metatrace");
    s->trace = host->metatrace;
    s->sink = *sink;
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct metatrace_session *s = state;
    (void)err;
    s->trace->users++;
    s->read = s->trace->next;
    s->started = true;
    return 0;
}

/* PerfettoMetatrace: 8 event_name, 3 event_duration_ns, 9 counter_name, 4 counter_value, 5 thread_id, 6 has_overruns.
 */
static void put(struct pb_writer *w, const struct metatrace_record *r, bool overrun)
{
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, r->begin_ns);
    size_t message = pb_begin(w, TRACE_PACKET_PERFETTO_METATRACE);
    if (r->is_counter) {
        pb_put_str(w, PERFETTO_METATRACE_COUNTER_NAME, r->name);
        pb_put_i64(w, PERFETTO_METATRACE_COUNTER_VALUE, r->value);
    } else {
        pb_put_str(w, PERFETTO_METATRACE_EVENT_NAME, r->name);
        pb_put_varint(w, PERFETTO_METATRACE_EVENT_DURATION_NS, r->duration_ns);
    }
    pb_put_varint(w, PERFETTO_METATRACE_THREAD_ID, (uint64_t)getpid());
    if (overrun)
        pb_put_varint(w, PERFETTO_METATRACE_HAS_OVERRUNS, 1);
    pb_end(w, message);
}

static void flush(void *state)
{
    struct metatrace_session *s = state;
    struct pb_writer w = {0};
    uint64_t end = s->trace->next;
    bool overrun = end - s->read > METATRACE_RING;
    if (!s->started)
        return;
    if (overrun)
        s->read = end - METATRACE_RING;
    for (; s->read < end && !w.failed; s->read++) {
        pb_writer_clear(&w);
        put(&w, &s->trace->ring[s->read % METATRACE_RING], overrun);
        if (!w.failed)
            packet_sink_write(&s->sink, pb_written(&w));
        overrun = false;
    }
    pb_writer_free(&w);
}

static void stop(void *state)
{
    struct metatrace_session *s = state;
    if (!s->started)
        return;
    flush(s);
    s->started = false;
    s->trace->users--;
}

const struct data_source_type metatrace_data_source = {
    .name = "perfetto.metatrace",
    .setup = setup,
    .start = start,
    .flush = flush,
    .stop = stop,
    .free = mem_free,
};
