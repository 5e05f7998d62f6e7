/* What tests of the probes share: packets in memory, a host without a service, a way to skip. */
#ifndef MERIDIAN_TEST_PROBES_FIXTURE_H
#define MERIDIAN_TEST_PROBES_FIXTURE_H

#include "base/alloc.h"
#include "base/vec.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/ftrace/ftrace_source.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A test that cannot run here says why on standard error and passes: Check has no skip. */
#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        fprintf(stderr, "skipped %s: ", __func__);                                                                     \
        fprintf(stderr, __VA_ARGS__);                                                                                  \
        fputc('\n', stderr);                                                                                           \
        return;                                                                                                        \
    } while (0)

/* Packets in memory, one after the other. */
struct memory_sink {
    VEC(uint8_t)
    bytes;
    VEC(size_t)
    ends;
};

static inline void memory_sink_write(void *ctx, const struct slice *pieces, size_t n)
{
    struct memory_sink *m = ctx;
    for (size_t i = 0; i < n; i++) {
        ck_assert(vec_reserve(&m->bytes, m->bytes.n + pieces[i].len + 1));
        if (pieces[i].len)
            memcpy(m->bytes.p + m->bytes.n, pieces[i].p, pieces[i].len);
        m->bytes.n += pieces[i].len;
    }
    ck_assert(vec_push(&m->ends, m->bytes.n));
}

static inline struct packet_sink memory_sink(struct memory_sink *m)
{
    return (struct packet_sink){.write = memory_sink_write, .ctx = m};
}

static inline size_t memory_sink_count(const struct memory_sink *m)
{
    return m->ends.n;
}

static inline struct slice memory_sink_packet(const struct memory_sink *m, size_t i)
{
    size_t begin = i ? m->ends.p[i - 1] : 0;
    return slice_of(m->bytes.p + begin, m->ends.p[i] - begin);
}

static inline void memory_sink_free(struct memory_sink *m)
{
    vec_free(&m->bytes);
    vec_free(&m->ends);
}

/* The payload of field `id` of packet `i`, empty when the packet has no such field. */
static inline struct slice memory_sink_field(const struct memory_sink *m, size_t i, uint32_t id)
{
    struct pb_field f;
    return pb_find(memory_sink_packet(m, i), id, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
}

/* A varint field of a message, 0 when absent. */
static inline uint64_t message_u64(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_u64(&f) : 0;
}

static inline bool message_has(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f);
}

static inline struct slice message_bytes(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
}

/* A host on a loop of its own, with a directory for undo logs and everything that data sources tell each other. */
struct test_host {
    uv_loop_t loop;
    struct probes_host host;
    struct metatrace metatrace;
    char run_directory[64];
    char last_log[1024];
    VEC(int32_t)
    tids;
    VEC(struct inode_key)
    inodes;
};

static inline void test_host_log(void *ctx, const char *text)
{
    struct test_host *t = ctx;
    snprintf(t->last_log, sizeof t->last_log, "%s", text);
}

static inline void test_host_tids(void *ctx, uint64_t session, const int32_t *tids, size_t n)
{
    struct test_host *t = ctx;
    (void)session;
    for (size_t i = 0; i < n; i++)
        vec_push(&t->tids, tids[i]);
}

static inline void test_host_inodes(void *ctx, uint64_t session, const struct inode_key *inodes, size_t n)
{
    struct test_host *t = ctx;
    (void)session;
    for (size_t i = 0; i < n; i++)
        vec_push(&t->inodes, inodes[i]);
}

static inline struct test_host *test_host_new(enum ring_mode mode)
{
    struct test_host *t = calloc(1, sizeof *t);
    strcpy(t->run_directory, "/tmp/mrd-probes-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t->run_directory));
    uv_loop_init(&t->loop);
    struct ftrace_source_options o = {NULL, t->run_directory, mode};
    t->host = (struct probes_host){.loop = &t->loop,
                                   .log = test_host_log,
                                   .new_tids = test_host_tids,
                                   .new_inodes = test_host_inodes,
                                   .ctx = t,
                                   .metatrace = &t->metatrace,
                                   .ftrace = ftrace_source_create(&o)};
    return t;
}

static inline void test_host_stop(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static inline void test_host_run(struct test_host *t, unsigned ms)
{
    uv_timer_t *timer = malloc(sizeof *timer);
    uv_timer_init(&t->loop, timer);
    uv_timer_start(timer, test_host_stop, ms, 0);
    uv_run(&t->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)timer, (uv_close_cb)(void (*)(void))free);
    uv_run(&t->loop, UV_RUN_NOWAIT);
}

static inline void test_host_free(struct test_host *t)
{
    uv_run(&t->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&t->loop), 0); /* nothing was left open */
    ftrace_source_free(t->host.ftrace);
    ck_assert_int_eq(rmdir(t->run_directory), 0); /* no undo log is left */
    vec_free(&t->tids);
    vec_free(&t->inodes);
    free(t);
}

/* One data source in a session, from setup to free. */
struct test_session {
    const struct data_source_type *type;
    void *state;
    struct memory_sink sink;
};

static inline int test_session_start(struct test_session *s, struct test_host *t, const struct data_source_type *type,
                                     struct slice config, struct error *err)
{
    struct data_source_config c = {.session_id = 1, .specific = config};
    memset(s, 0, sizeof *s);
    s->type = type;
    struct packet_sink sink = memory_sink(&s->sink);
    int rc = type->setup(&t->host, &c, &sink, &s->state, err);
    if (rc) {
        s->state = NULL;
        return rc;
    }
    return type->start(s->state, err);
}

/* Stops and frees the state; the packets stay. */
static inline void test_session_stop(struct test_session *s)
{
    if (s->state && s->type->stop)
        s->type->stop(s->state);
    if (s->state)
        s->type->free(s->state);
    s->state = NULL;
}

#endif
