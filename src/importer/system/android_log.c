/* Owns the packets of Android's log: lines into `logs`, each at the time of its own, and the log's counts into stats.
 */
#include "importer/system/system_internal.h"

#include "importer/clock/clock_graph.h"
#include "wire/fields.h"

#include <stdio.h>

enum { MAX_MESSAGE = 4096 /* of a line with values; the rest is cut */, DEFAULT_PRIO = 4 /* info */ };

struct log_line {
    int32_t pid, tid;
    uint32_t prio;
    strid tag, msg;
};

struct android_log {
    struct machine_ctx *m;
    uint32_t queue; /* in the sorter; `a` of its events is an index of lines */
    strid source;
    VEC(struct log_line)
    lines;
};

void android_log_close(struct android_log *l)
{
    if (!l)
        return;
    vec_free(&l->lines);
    mem_free(l);
}

static void parse_lines(void *owner, const struct sort_event *events, size_t n)
{
    struct android_log *l = owner;
    for (size_t i = 0; i < n; i++) {
        const struct log_line *e = &l->lines.p[events[i].a];
        uint32_t utid = e->pid ? process_tracker_update_thread(l->m->processes, e->tid, e->pid)
                               : process_tracker_thread(l->m->processes, e->tid);
        logs_insert(l->m->st, &(struct logs_row){.ts = events[i].ts,
                                                 .utid = utid,
                                                 .prio = e->prio,
                                                 .log_source = l->source,
                                                 .tag = e->tag,
                                                 .msg = e->msg});
    }
}

static struct android_log *log_of(struct machine_ctx *m)
{
    struct android_log *l = m->system->android_log;
    if (l)
        return l;
    l = mem_zalloc(sizeof *l);
    if (!l)
        return NULL;
    *l = (struct android_log){.m = m, .source = import_str(m->im, "android_logcat")};
    l->queue = sorter_add_queue(m->im->sorter, parse_lines, l);
    if (l->queue == UINT32_MAX) {
        mem_free(l);
        return NULL;
    }
    return m->system->android_log = l;
}

/* Appends what fits of a text. */
static size_t append(char *text, size_t at, struct slice s)
{
    size_t n = s.len < MAX_MESSAGE - at ? s.len : MAX_MESSAGE - at;
    if (n)
        memcpy(text + at, s.p, n);
    return at + n;
}

/* Appends " NAME=VALUE". */
static size_t append_value(char *text, size_t at, struct slice arg)
{
    struct slice name = {0};
    struct pb_field f, value = {0};
    struct pb_cursor c = pb_cursor(arg);
    while (pb_next(&c, &f)) {
        if (f.id == ANDROID_LOG_PACKET_LOG_EVENT_ARG_NAME)
            name = pb_bytes(&f);
        else if (f.id >= ANDROID_LOG_PACKET_LOG_EVENT_ARG_INT_VALUE &&
                 f.id <= ANDROID_LOG_PACKET_LOG_EVENT_ARG_STRING_VALUE)
            value = f;
    }
    at = append(text, at, slice_str(" "));
    at = append(text, at, name);
    at = append(text, at, slice_str("="));
    char number[400] = ""; /* a float has up to 39 digits before the point */
    switch (value.id) {
    case ANDROID_LOG_PACKET_LOG_EVENT_ARG_STRING_VALUE:
        at = append(text, at, slice_str("\""));
        at = append(text, at, pb_bytes(&value));
        return append(text, at, slice_str("\""));
    case ANDROID_LOG_PACKET_LOG_EVENT_ARG_INT_VALUE:
        snprintf(number, sizeof number, "%lld", (long long)pb_i64(&value));
        break;
    case ANDROID_LOG_PACKET_LOG_EVENT_ARG_FLOAT_VALUE:
        snprintf(number, sizeof number, "%f", (double)pb_float(&value));
        break;
    }
    return append(text, at, slice_str(number));
}

static void add_line(struct packet *p, struct android_log *l, struct slice bytes)
{
    struct importer *im = p->m->im;
    struct log_line line = {.tag = import_str(im, ""), .msg = import_str(im, "")};
    struct slice message = {0};
    uint64_t realtime = 0;
    bool has_values = false;
    struct pb_field f;
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case ANDROID_LOG_PACKET_LOG_EVENT_PID:
            line.pid = pb_i32(&f);
            break;
        case ANDROID_LOG_PACKET_LOG_EVENT_TID:
            line.tid = pb_i32(&f);
            break;
        case ANDROID_LOG_PACKET_LOG_EVENT_TIMESTAMP:
            realtime = pb_u64(&f);
            break;
        case ANDROID_LOG_PACKET_LOG_EVENT_PRIO:
            line.prio = pb_u32(&f);
            break;
        case ANDROID_LOG_PACKET_LOG_EVENT_TAG:
            line.tag = import_slice(im, pb_bytes(&f));
            break;
        case ANDROID_LOG_PACKET_LOG_EVENT_MESSAGE:
            message = pb_bytes(&f);
            break;
        case ANDROID_LOG_PACKET_LOG_EVENT_ARGS:
            has_values = true;
            break;
        }
    }
    int64_t ts;
    if (realtime > INT64_MAX ||
        clock_graph_to_trace_time(im->clocks, packet_clock(p, CLOCK_ID_REALTIME), (int64_t)realtime, &ts) != 0)
        return; /* the clock graph counts it */
    if (!line.prio)
        line.prio = DEFAULT_PRIO;
    if (has_values) {
        char text[MAX_MESSAGE];
        size_t n = append(text, 0, message);
        for (c = pb_cursor(bytes); pb_next(&c, &f) && n < MAX_MESSAGE;)
            if (f.id == ANDROID_LOG_PACKET_LOG_EVENT_ARGS)
                n = append_value(text, n, pb_bytes(&f));
        line.msg = import_slice(im, (struct slice){(const uint8_t *)text, n});
    } else if (message.len) {
        line.msg = import_slice(im, message);
    }
    if (!vec_push(&l->lines, line))
        im->failed = true;
    else
        sorter_push(im->sorter, l->queue, (struct sort_event){.ts = ts, .a = l->lines.n - 1});
}

static void set_counts(struct machine_ctx *m, struct slice bytes)
{
    static const struct {
        uint32_t field;
        enum stat_key stat;
    } counts[] = {
        {ANDROID_LOG_PACKET_STATS_NUM_TOTAL, STAT_android_log_num_total},
        {ANDROID_LOG_PACKET_STATS_NUM_FAILED, STAT_android_log_num_failed},
        {ANDROID_LOG_PACKET_STATS_NUM_SKIPPED, STAT_android_log_num_skipped},
    };
    struct pb_field f;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (pb_find(bytes, counts[i].field, &f))
            stats_set(&m->st->stats, m->id, counts[i].stat, pb_i64(&f));
}

enum tokenize_result android_log_tokenize(struct packet *p)
{
    struct android_log *l = log_of(p->m);
    if (!l) {
        p->m->im->failed = true;
        return TOKENIZE_DONE;
    }
    struct pb_field f;
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        if (f.id == ANDROID_LOG_PACKET_EVENTS)
            add_line(p, l, pb_bytes(&f));
        else if (f.id == ANDROID_LOG_PACKET_STATS)
            set_counts(p->m, pb_bytes(&f));
    }
    return TOKENIZE_DONE;
}
