/* Packets of every kind, made up from the schema, with ids that are new each time: what they hold is in proportion to
 * their bytes.
 *
 * MERIDIAN_LONG is the number of seeds for each kind; usually it is one. */
#include "importer/importer.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"
#include "wire/trace_fields.h"

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BYTES = 256 << 10, /* of each trace */
    MOST_DEPTH = 5,
    BLIND_FIELDS = 12,   /* of messages that the schema does not tell */
    TIMES = 150,         /* bytes of memory for each of the input, at most */
    SLACK = 16 << 20,    /* of what an import takes anyhow */
    MACHINE = 140 << 10, /* each machine, of which there are as many as the input can be about (unit.bombs) */
    MOST_EVENT = 600,    /* kernel events beyond have no number */
};

struct maker {
    struct pb_writer w;
    uint64_t state, step; /* random; from one id to the next */
    uint32_t i, share;    /* number of the packet; how many of 8 fields are there */
};

static uint32_t below(struct maker *m, uint32_t n)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->state >> 33) % n;
}

static uint64_t number(struct maker *m)
{
    switch (below(m, 8)) {
    case 0:
        return below(m, 4);
    case 1:
        return 1;
    default:
        return m->i * m->step;
    }
}

static void put_value(struct maker *m, uint32_t id, enum trace_type type)
{
    char text[16];
    switch (trace_type_wire(type)) {
    case PB_FIXED64:
        pb_put_fixed64(&m->w, id, number(m));
        break;
    case PB_FIXED32:
        pb_put_fixed32(&m->w, id, (uint32_t)number(m));
        break;
    case PB_BYTES:
        pb_put_bytes(&m->w, id, text, (size_t)snprintf(text, sizeof text, "%x", m->i));
        break;
    default:
        pb_put_varint(&m->w, id, type == TRACE_TYPE_ENUM ? below(m, 12) : number(m));
    }
}

/* A message of which the schema tells nothing. */
static void put_blind(struct maker *m, int depth)
{
    for (uint32_t id = 1; id <= BLIND_FIELDS; id++) {
        uint32_t kind = below(m, 8);
        if (kind < 3 + (m->share < 4)) {
            continue;
        } else if (kind < 5 || depth == MOST_DEPTH) {
            put_value(m, id, TRACE_TYPE_UINT64);
        } else if (kind < 6) {
            put_value(m, id, TRACE_TYPE_STRING);
        } else {
            size_t one = pb_begin(&m->w, id);
            put_blind(m, depth + 1);
            pb_end(&m->w, one);
        }
    }
}

static void put_message(struct maker *m, const struct trace_message *message, int depth)
{
    if (!message || !message->n_fields) {
        put_blind(m, depth);
        return;
    }
    uint32_t share = message->n_fields > 24 ? 1 : m->share; /* few of many: ids cost most where little is beside them */
    for (uint32_t k = 0; k < message->n_fields; k++) {
        const struct trace_field *f = &message->fields[k];
        if (below(m, 8) >= share)
            continue;
        if (f->type != TRACE_TYPE_MESSAGE) {
            put_value(m, f->number, f->type);
        } else if (depth < MOST_DEPTH) {
            size_t one = pb_begin(&m->w, f->number);
            put_message(m, trace_field_message(f), depth + 1);
            pb_end(&m->w, one);
        }
    }
}

/* `event`: of the kernel, in a bundle; 0: none. */
static void put_packet(struct maker *m, const struct trace_field *kind, const struct trace_field *event)
{
    size_t packet = pb_begin(&m->w, TRACE_PACKET);
    pb_put_varint(&m->w, TRACE_PACKET_TIMESTAMP, 1000 + m->i);
    pb_put_varint(&m->w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, m->state % 4 ? 1 : m->i);
    pb_put_varint(&m->w, TRACE_PACKET_SEQUENCE_FLAGS, m->i == 1 ? 3 : 2);
    if (event) {
        size_t bundle = pb_begin(&m->w, TRACE_PACKET_FTRACE_EVENTS);
        pb_put_varint(&m->w, FTRACE_EVENT_BUNDLE_CPU, m->i % 4);
        for (int k = 0; k < 8; k++) {
            size_t one = pb_begin(&m->w, FTRACE_EVENT_BUNDLE_EVENT);
            pb_put_varint(&m->w, FTRACE_EVENT_TIMESTAMP, 1000 + m->i);
            pb_put_varint(&m->w, FTRACE_EVENT_PID, number(m));
            size_t payload = pb_begin(&m->w, event->number);
            put_message(m, trace_field_message(event), 2);
            pb_end(&m->w, payload);
            pb_end(&m->w, one);
        }
        pb_end(&m->w, bundle);
    } else if (kind->type != TRACE_TYPE_MESSAGE) {
        put_value(m, kind->number, kind->type);
    } else {
        size_t one = pb_begin(&m->w, kind->number);
        put_message(m, trace_field_message(kind), 1);
        pb_end(&m->w, one);
    }
    pb_end(&m->w, packet);
}

/* What this process has allocated and what it holds, in bytes: the larger. */
static size_t held(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%ld %ld", &pages, &resident), 2);
    fclose(f);
    return (size_t)resident * 4096;
}

/* Imports what was made, and fails when that holds more than its bytes allow. */
static void check_import(struct maker *m, const char *kind, const char *event, uint64_t seed)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    malloc_trim(0);
    size_t before = held();
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    importer_feed(im, m->w.p, m->w.n, &err);
    importer_finish(im, &err);
    size_t now = held(), taken = now > before ? now - before : 0;
    size_t most = TIMES * m->w.n + SLACK + st.t[T_machine].n_rows * (size_t)MACHINE;
#ifdef __SANITIZE_ADDRESS__
    most *= 4; /* what lies around each block, and blocks that are kept back */
#endif
    ck_assert_msg(taken < most, "%s %s, seed %lu: %zu KB for %zu KB", kind, event, (unsigned long)seed, taken >> 10,
                  m->w.n >> 10);
    importer_close(im);
    storage_free(&st);
    pb_writer_free(&m->w);
}

/* `kind` NULL: another one each time. */
static void check_one(const struct trace_field *kind, const struct trace_field *event, uint64_t seed)
{
    static const uint64_t steps[] = {1, 1, 1, 4099, 65537, 0x100000001, (uint64_t)-1};
    const struct trace_message *packets = trace_message_by_name("TracePacket");
    struct maker m = {.state = seed * 77 + (event ? event->number : kind ? kind->number : 0)};
    m.step = steps[below(&m, 7)];
    m.share = (uint32_t[]){1, 2, 4, 8}[below(&m, 4)];
    bool alike = kind && below(&m, 3); /* all packets, but for their ids */
    uint64_t shape = m.state;
    for (m.i = 1; m.w.n < BYTES; m.i++) {
        if (alike)
            m.state = shape;
        put_packet(&m, kind ? kind : &packets->fields[below(&m, packets->n_fields)], event);
    }
    check_import(&m, kind ? kind->name : "packets", event ? event->name : "", seed);
}

static unsigned seeds(void)
{
    const char *longer = getenv("MERIDIAN_LONG");
    return longer ? (unsigned)strtoul(longer, NULL, 10) : 1;
}

START_TEST(every_packet_is_in_proportion)
{
    const struct trace_message *packet = trace_message_by_name("TracePacket");
    ck_assert_ptr_nonnull(packet);
    for (uint32_t k = 0; k < packet->n_fields; k++)
        for (uint64_t seed = 1; seed <= seeds(); seed++)
            check_one(&packet->fields[k], NULL, seed);
}
END_TEST

START_TEST(every_kernel_event_is_in_proportion)
{
    const struct trace_message *event = trace_message_by_name("FtraceEvent");
    const struct trace_field *bundle =
        trace_field_by_number(trace_message_by_name("TracePacket"), TRACE_PACKET_FTRACE_EVENTS);
    unsigned n = 0;
    for (uint32_t number = 1; number < MOST_EVENT; number++) {
        const struct trace_field *f = trace_field_by_number(event, number);
        if (!f || f->type != TRACE_TYPE_MESSAGE)
            continue;
        n++;
        for (uint64_t seed = 1; seed <= seeds(); seed++)
            check_one(bundle, f, seed);
    }
    ck_assert_uint_gt(n, 300);
}
END_TEST

START_TEST(packets_of_all_kinds_are_in_proportion)
{
    for (uint64_t seed = 1; seed <= 4 * seeds(); seed++)
        check_one(NULL, NULL, seed);
}
END_TEST

enum { MACHINES = 1000, THREADS = 20000, FIRST_TID = 100000, LOW_TID = 65000 };

static void put_threads(struct maker *m)
{
    for (uint32_t i = 0; i < THREADS;) {
        size_t packet = pb_begin(&m->w, TRACE_PACKET), tree = pb_begin(&m->w, TRACE_PACKET_PROCESS_TREE);
        for (int k = 0; k < 50; k++, i++) {
            size_t thread = pb_begin(&m->w, PROCESS_TREE_THREADS);
            pb_put_varint(&m->w, PROCESS_TREE_THREAD_TID, FIRST_TID + i);
            pb_put_varint(&m->w, PROCESS_TREE_THREAD_TGID, 1);
            pb_end(&m->w, thread);
        }
        pb_end(&m->w, tree);
        pb_end(&m->w, packet);
    }
}

static void put_print(struct pb_writer *w, uint64_t tid)
{
    (void)tid;
    size_t event = pb_begin(w, FTRACE_EVENT_PRINT);
    pb_put_str(w, FTRACE_PRINT_BUF, "B|1|x");
    pb_end(w, event);
}

static void put_switch(struct pb_writer *w, uint64_t tid)
{
    size_t event = pb_begin(w, FTRACE_EVENT_SCHED_SWITCH);
    pb_put_varint(w, FTRACE_SCHED_SWITCH_PREV_PID, tid);
    pb_put_varint(w, FTRACE_SCHED_SWITCH_NEXT_PID, tid + 1);
    pb_end(w, event);
}

static void put_call(struct pb_writer *w, uint64_t tid)
{
    (void)tid;
    size_t event = pb_begin(w, FTRACE_EVENT_SYS_ENTER);
    pb_put_varint(w, FTRACE_SYS_ENTER_ID, 1);
    pb_end(w, event);
}

/* What each of many machines tells of a thread that came late, and of a cpu with a high number. */
static const struct {
    const char *name;
    void (*put)(struct pb_writer *w, uint64_t tid);
    uint32_t cpu, tid;
} of_machines[] = {
    {"slices of threads", put_print, 0, 2 * FIRST_TID},    {"states of threads", put_switch, 0, 2 * FIRST_TID},
    {"calls of threads", put_call, 0, 2 * FIRST_TID},      {"low tids", put_switch, 0, LOW_TID},
    {"cpus with high numbers", put_switch, 1023, LOW_TID},
};

/* Ids count over all machines: a table of each machine must not be as long as those of all. */
START_TEST(tables_of_machines_do_not_multiply)
{
    struct maker m = {0};
    put_threads(&m);
    for (uint32_t i = 1; i <= MACHINES; i++) {
        uint64_t tid = of_machines[_i].tid + (of_machines[_i].tid == LOW_TID ? 0 : i);
        size_t packet = pb_begin(&m.w, TRACE_PACKET);
        pb_put_varint(&m.w, TRACE_PACKET_MACHINE_ID, i);
        size_t bundle = pb_begin(&m.w, TRACE_PACKET_FTRACE_EVENTS);
        pb_put_varint(&m.w, FTRACE_EVENT_BUNDLE_CPU, of_machines[_i].cpu);
        size_t event = pb_begin(&m.w, FTRACE_EVENT_BUNDLE_EVENT);
        pb_put_varint(&m.w, FTRACE_EVENT_TIMESTAMP, 1000 + i);
        pb_put_varint(&m.w, FTRACE_EVENT_PID, tid);
        of_machines[_i].put(&m.w, tid);
        pb_end(&m.w, event);
        pb_end(&m.w, bundle);
        pb_end(&m.w, packet);
    }
    check_import(&m, of_machines[_i].name, "of machines", 0);
}
END_TEST

/* Each window of events costs as much as it holds, not as there are cpus of machines that could have had some: this
 * took half an hour. */
START_TEST(windows_cost_what_they_hold)
{
    struct maker m = {0};
    struct storage st;
    struct importer *im;
    struct error err = {0};
    for (uint32_t i = 1; i <= MACHINES; i++) {
        size_t packet = pb_begin(&m.w, TRACE_PACKET);
        pb_put_varint(&m.w, TRACE_PACKET_MACHINE_ID, i);
        size_t bundle = pb_begin(&m.w, TRACE_PACKET_FTRACE_EVENTS);
        pb_put_varint(&m.w, FTRACE_EVENT_BUNDLE_CPU, 1023);
        pb_end(&m.w, bundle);
        pb_end(&m.w, packet);
    }
    for (int i = 0; i < 3 * 30000; i++) {
        size_t packet = pb_begin(&m.w, TRACE_PACKET), event = pb_begin(&m.w, TRACE_PACKET_SERVICE_EVENT);
        pb_put_varint(&m.w,
                      i % 3 < 2 ? TRACING_SERVICE_EVENT_ALL_DATA_SOURCES_FLUSHED
                                : TRACING_SERVICE_EVENT_READ_TRACING_BUFFERS_COMPLETED,
                      1);
        pb_end(&m.w, event);
        pb_end(&m.w, packet);
    }
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    ck_assert_int_eq(importer_feed(im, m.w.p, m.w.n, &err), 0);
    importer_finish(im, &err);
    ck_assert_uint_gt(st.t[T_machine].n_rows, 500);
    importer_close(im);
    storage_free(&st);
    pb_writer_free(&m.w);
}
END_TEST

Suite *memory_by_ids_suite(void);
Suite *memory_by_ids_suite(void)
{
    Suite *s = suite_create("memory_by_ids");
    TCase *t = tcase_create("memory_by_ids");
    tcase_set_timeout(t, getenv("MERIDIAN_LONG") ? 3600 : 120);
    tcase_add_test(t, every_packet_is_in_proportion);
    tcase_add_test(t, every_kernel_event_is_in_proportion);
    tcase_add_test(t, packets_of_all_kinds_are_in_proportion);
    tcase_add_loop_test(t, tables_of_machines_do_not_multiply, 0, (int)(sizeof of_machines / sizeof *of_machines));
    tcase_add_test(t, windows_cost_what_they_hold);
    suite_add_tcase(s, t);
    return s;
}
