/* A record of what the library itself does, as a trace (PerfettoMetatrace packets on the boot clock). */
#include "api/tp_internal.h"
#include "base/clock.h"
#include "wire/fields.h"

#include "wire/pb_writer.h"

#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_RECORDS = 16384,
    MAX_TEXT = 4096, /* of an SQL statement */
    /* TracePacket and PerfettoMetatrace */
};

int64_t tp_meta_now(const struct tp *tp, unsigned category)
{
    if (!(tp->meta.categories & category))
        return 0;
    return clock_now_ns(CLOCK_BOOTTIME);
}

void tp_meta_record(struct tp *tp, unsigned category, const char *name, int64_t start_ns, const char *key,
                    const char *text, size_t len)
{
    struct metatrace *m = &tp->meta;
    int64_t now = tp_meta_now(tp, category);
    if (!now || !start_ns)
        return;
    struct meta_record r = {.name = name, .key = key, .start_ns = start_ns, .dur_ns = now - start_ns};
    r.text = text ? mem_strndup(text, len < MAX_TEXT ? len : MAX_TEXT) : NULL;
    if (m->records.n < m->capacity) {
        if (vec_push(&m->records, r))
            return;
    } else if (m->records.n > 0) { /* the oldest makes room */
        struct meta_record *oldest = &m->records.p[m->next];
        mem_free(oldest->text);
        *oldest = r;
        m->next = (m->next + 1) % m->records.n;
        m->overran = true;
        return;
    }
    m->overran = true;
    mem_free(r.text);
}

static void clear(struct metatrace *m)
{
    for (size_t i = 0; i < m->records.n; i++)
        mem_free(m->records.p[i].text);
    vec_free(&m->records);
    m->next = 0;
    m->overran = false;
}

void tp_metatrace_start(struct tp *tp, unsigned categories, size_t capacity)
{
    clear(&tp->meta);
    tp->meta.categories = categories;
    tp->meta.capacity = capacity ? capacity : DEFAULT_RECORDS;
}

static void write_record(struct pb_writer *w, const struct meta_record *r, bool overran)
{
    size_t packet = pb_begin(w, TRACE_PACKET);
    pb_put_i64(w, TRACE_PACKET_TIMESTAMP, r->start_ns);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    size_t meta = pb_begin(w, TRACE_PACKET_PERFETTO_METATRACE);
    pb_put_str(w, PERFETTO_METATRACE_EVENT_NAME, r->name);
    pb_put_i64(w, PERFETTO_METATRACE_EVENT_DURATION_NS, r->dur_ns);
    pb_put_varint(w, PERFETTO_METATRACE_THREAD_ID, (uint64_t)getpid());
    if (overran)
        pb_put_varint(w, PERFETTO_METATRACE_HAS_OVERRUNS, 1);
    if (r->text) {
        size_t arg = pb_begin(w, PERFETTO_METATRACE_ARGS);
        pb_put_str(w, PERFETTO_METATRACE_ARG_KEY, r->key);
        pb_put_str(w, PERFETTO_METATRACE_ARG_VALUE, r->text);
        pb_end(w, arg);
    }
    pb_end(w, meta);
    pb_end(w, packet);
}

int tp_metatrace_stop(struct tp *tp, void **bytes, size_t *len)
{
    struct metatrace *m = &tp->meta;
    struct pb_writer w = {0};
    for (size_t i = 0; i < m->records.n; i++)
        write_record(&w, &m->records.p[(m->next + i) % m->records.n], i == 0 && m->overran);
    clear(m);
    m->categories = 0;
    tp_done(tp, 0);
    *bytes = w.p;
    *len = w.n;
    if (!w.failed)
        return 0;
    pb_writer_free(&w);
    *bytes = NULL;
    return tp_done(tp, -MRD_ENOMEM);
}

void tp_free(void *bytes)
{
    mem_free(bytes);
}
