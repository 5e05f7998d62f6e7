/* The tracing service on a loop of the test, with consumers and producers that the test plays over its sockets. */
#include "service_fixture.h"

#include "capture/shm/abi.h"
#include "wire/text_format.h"

#include "pb_text.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 16, MEMORY = PAGE * PAGES };

void world_open(struct world *w)
{
    struct error err = {0};
    struct service_options o = {.n_producer_sockets = 1};
    *w = (struct world){0};
    snprintf(w->address[0], sizeof w->address[0], "@meridian-service-test-%d-producer", (int)getpid());
    snprintf(w->address[1], sizeof w->address[1], "@meridian-service-test-%d-consumer", (int)getpid());
    o.producer_sockets[0] = w->address[0];
    o.consumer_socket = w->address[1];
    uv_loop_init(&w->loop);
    int log = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY); /* the service's log is of no interest here */
    dup2(null, STDERR_FILENO);
    close(log);
    close(null);
    ck_assert_msg(service_open(&w->service, &w->loop, &o, &err) == 0, "%s", err.text);
}

void world_close(struct world *w)
{
    service_close(w->service);
    loop_end(&w->loop);
}

void world_settle(struct world *w)
{
    loop_settle(&w->loop);
}

struct session *world_session(struct world *w, size_t i)
{
    ck_assert_uint_lt(i, w->service->sessions.n);
    return w->service->sessions.p[i];
}

/* ---- answers ---- */

static void on_answer(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct replies *a = ctx;
    a->n++;
    a->success = success;
    a->has_more = has_more;
    pb_writer_clear(&a->last);
    pb_put_raw(&a->last, reply.p, reply.len);
    pb_put_raw(&a->all, reply.p, reply.len);
}

void replies_free(struct replies *a)
{
    pb_writer_free(&a->last);
    pb_writer_free(&a->all);
}

const char *reply_text(const struct replies *a, uint32_t field)
{
    static char text[1024];
    struct pb_field f;
    *text = 0;
    if (pb_find(pb_written(&a->last), field, &f))
        snprintf(text, sizeof text, "%.*s", (int)f.u, (const char *)f.p);
    return text;
}

uint64_t reply_number(const struct replies *a, uint32_t field)
{
    struct pb_field f;
    return pb_find(pb_written(&a->last), field, &f) ? pb_u64(&f) : 0;
}

/* Fields written in numbers, as put() reads them. */
static void write_args(struct pb_writer *w, const char *text)
{
    const char *end = put_fields(w, text);
    ck_assert_msg(!*end, "more than the message at: %s", end);
}

static bool ended(const struct replies *a)
{
    return a->n && !a->has_more;
}

static struct replies call(struct world *w, struct ipc_client *client, unsigned method, struct slice args)
{
    struct replies a = {0};
    ck_assert(ipc_client_invoke(client, method, args, -1, on_answer, &a));
    RUN_UNTIL(&w->loop, ended(&a));
    return a;
}

/* ---- consumers ---- */

static void parse_config(struct pb_writer *w, const char *text)
{
    struct error err = {0};
    int rc = text_parse(&mrd__trace_config__descriptor, slice_str(text), 0, w, &err);
    ck_assert_msg(rc == 0, "%s in: %s", err.text, text);
}

Mrd__TraceConfig *config_of(const char *text)
{
    struct pb_writer w = {0};
    parse_config(&w, text);
    Mrd__TraceConfig *c = mrd__trace_config__unpack(NULL, w.n, w.p);
    ck_assert_ptr_nonnull(c);
    pb_writer_free(&w);
    return c;
}

static void on_consumer_bound(void *ctx)
{
    ((struct consumer *)ctx)->bound = true;
}

static void on_consumer_gone(void *ctx, const char *why)
{
    (void)why;
    ((struct consumer *)ctx)->gone = true;
}

void consumer_join(struct consumer *c, struct world *w)
{
    static const struct ipc_client_ops ops = {.bound = on_consumer_bound, .disconnected = on_consumer_gone};
    struct error err = {0};
    *c = (struct consumer){.world = w};
    int rc = ipc_client_open(&c->client, &w->loop, w->address[1], &ipc_consumer_port, NULL, &ops, c, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    RUN_UNTIL(&w->loop, c->bound);
    ck_assert(consumer_ok(c, CONSUMER_QUERY_CAPABILITIES, ""));
    c->inside = *vec_last(&w->service->consumers);
}

void consumer_leave(struct consumer *c)
{
    ipc_client_close(c->client);
    loop_settle(&c->world->loop);
    replies_free(&c->enabled);
    replies_free(&c->observed);
}

void consumer_is(struct consumer *c, uint32_t uid)
{
    ((struct ipc_identity *)(uintptr_t)ipc_peer_identity(c->inside->peer))->uid = uid;
}

struct replies consumer_call(struct consumer *c, unsigned method, const char *args)
{
    struct pb_writer w = {0};
    write_args(&w, args);
    struct replies a = call(c->world, c->client, method, pb_written(&w));
    pb_writer_free(&w);
    return a;
}

bool consumer_ok(struct consumer *c, unsigned method, const char *args)
{
    struct replies a = consumer_call(c, method, args);
    replies_free(&a);
    return a.success;
}

const char *consumer_enable(struct consumer *c, const char *config)
{
    struct pb_writer w = {0};
    size_t m = pb_begin(&w, ENABLE_TRACING_REQUEST_TRACE_CONFIG);
    parse_config(&w, config);
    pb_end(&w, m);
    replies_free(&c->enabled);
    c->enabled = (struct replies){0};
    ck_assert(ipc_client_invoke(c->client, CONSUMER_ENABLE_TRACING, pb_written(&w), -1, on_answer, &c->enabled));
    pb_writer_free(&w);
    ck_assert(consumer_ok(c, CONSUMER_QUERY_CAPABILITIES, "")); /* answered after the other one */
    return c->enabled.n ? reply_text(&c->enabled, ENABLE_TRACING_RESPONSE_ERROR) : "";
}

void consumer_listen(struct consumer *c, uint64_t types)
{
    struct pb_writer w = {0};
    for (unsigned bit = 0; bit < 32; bit++)
        if (types >> bit & 1)
            pb_put_varint(&w, OBSERVE_EVENTS_REQUEST_EVENTS_TO_OBSERVE, 1u << bit);
    ck_assert(ipc_client_invoke(c->client, CONSUMER_OBSERVE_EVENTS, pb_written(&w), -1, on_answer, &c->observed));
    pb_writer_free(&w);
    ck_assert(consumer_ok(c, CONSUMER_QUERY_CAPABILITIES, ""));
}

struct pb_writer consumer_read(struct consumer *c)
{
    struct pb_writer trace = {0}, packet = {0};
    struct pb_field f, data, last;
    struct replies a = consumer_call(c, CONSUMER_READ_BUFFERS, "");
    ck_assert(a.success);
    struct pb_cursor at = pb_cursor(pb_written(&a.all));
    while (pb_next(&at, &f)) {
        if (f.id != READ_BUFFERS_RESPONSE_SLICES)
            continue;
        if (pb_find(pb_bytes(&f), READ_BUFFERS_RESPONSE_SLICE_DATA, &data))
            pb_put_raw(&packet, data.p, (size_t)data.u);
        if (!pb_find(pb_bytes(&f), READ_BUFFERS_RESPONSE_SLICE_LAST_SLICE_FOR_PACKET, &last) || !pb_bool(&last))
            continue;
        pb_put_bytes(&trace, TRACE_PACKET, packet.p, packet.n);
        pb_writer_clear(&packet);
    }
    ck_assert_uint_eq(packet.n, 0);
    pb_writer_free(&packet);
    replies_free(&a);
    return trace;
}

unsigned count_packets(const struct pb_writer *trace, uint32_t field)
{
    struct pb_cursor at = pb_cursor(pb_written(trace));
    struct pb_field f, g;
    unsigned n = 0;
    while (pb_next(&at, &f))
        n += pb_find(pb_bytes(&f), field, &g);
    return n;
}

bool has_text(const struct pb_writer *trace, const char *text)
{
    struct pb_cursor at = pb_cursor(pb_written(trace));
    struct pb_field f, g, s;
    while (pb_next(&at, &f))
        if (pb_find(pb_bytes(&f), TRACE_PACKET_FOR_TESTING, &g) && pb_find(pb_bytes(&g), TEST_EVENT_STR, &s) &&
            slice_eq_str(pb_bytes(&s), text))
            return true;
    return false;
}

/* ---- producers ---- */

static void on_command(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct producer *p = ctx;
    struct pb_cursor at = pb_cursor(reply);
    struct pb_field f;
    (void)has_more;
    ck_assert(success);
    while (pb_next(&at, &f)) {
        struct command_seen s = {.field = f.id};
        pb_put_raw(&s.body, f.p, (size_t)f.u);
        ck_assert(vec_push(&p->seen, s));
    }
    int fd = ipc_client_take_fd(p->client);
    if (fd < 0)
        return;
    p->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(p->memory, MAP_FAILED);
    close(fd);
}

static void on_producer_bound(void *ctx)
{
    ((struct producer *)ctx)->bound = true;
}

static void on_producer_gone(void *ctx, const char *why)
{
    (void)why;
    ((struct producer *)ctx)->gone = true;
}

void producer_join(struct producer *p, struct world *w, const char *name, const char *descriptor)
{
    static const struct ipc_client_ops ops = {.bound = on_producer_bound, .disconnected = on_producer_gone};
    struct error err = {0};
    char args[512];
    *p = (struct producer){.world = w};
    int rc = ipc_client_open(&p->client, &w->loop, w->address[0], &ipc_producer_port, NULL, &ops, p, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    RUN_UNTIL(&w->loop, p->bound);
    snprintf(args, sizeof args, "1:%d 2:%d 3'%s'", PAGE, MEMORY, name);
    ck_assert(producer_ok(p, PRODUCER_INITIALIZE_CONNECTION, args));
    p->inside = *vec_last(&w->service->producers);
    ck_assert(ipc_client_invoke(p->client, PRODUCER_GET_ASYNC_COMMAND, slice_of(NULL, 0), -1, on_command, p));
    snprintf(args, sizeof args, "1{%s}", descriptor);
    if (*descriptor)
        ck_assert(producer_ok(p, PRODUCER_REGISTER_DATA_SOURCE, args));
}

void producer_leave(struct producer *p)
{
    ipc_client_close(p->client);
    loop_settle(&p->world->loop);
    for (size_t i = 0; i < p->seen.n; i++)
        pb_writer_free(&p->seen.p[i].body);
    vec_free(&p->seen);
    if (p->memory)
        munmap(p->memory, MEMORY);
}

bool producer_ok(struct producer *p, unsigned method, const char *args)
{
    struct pb_writer w = {0};
    write_args(&w, args);
    struct replies a = call(p->world, p->client, method, pb_written(&w));
    pb_writer_free(&w);
    replies_free(&a);
    return a.success;
}

unsigned producer_count(const struct producer *p, uint32_t command)
{
    unsigned n = 0;
    for (size_t i = 0; i < p->seen.n; i++)
        n += p->seen.p[i].field == command;
    return n;
}

struct slice producer_last(const struct producer *p, uint32_t command)
{
    RUN_UNTIL(&p->world->loop, producer_count(p, command));
    for (size_t i = p->seen.n; i-- > 0;)
        if (p->seen.p[i].field == command)
            return pb_written(&p->seen.p[i].body);
    return slice_of(NULL, 0);
}

uint64_t producer_number(const struct producer *p, uint32_t command, uint32_t field)
{
    struct pb_field f;
    return pb_find(producer_last(p, command), field, &f) ? pb_u64(&f) : 0;
}

/* The buffer that its data source writes to, as the service numbers it. */
static uint64_t target_buffer(const struct producer *p)
{
    struct pb_field config, f;
    struct slice setup = producer_last(p, GET_ASYNC_COMMAND_RESPONSE_SETUP_DATA_SOURCE);
    ck_assert(pb_find(setup, GET_ASYNC_COMMAND_RESPONSE_SETUP_DATA_SOURCE_CONFIG, &config));
    ck_assert(pb_find(pb_bytes(&config), DATA_SOURCE_CONFIG_TARGET_BUFFER, &f));
    return pb_u64(&f);
}

void producer_write(struct producer *p, const char *text, uint64_t flush)
{
    struct pb_writer packet = {0}, fragment = {0};
    char args[128];
    size_t event = pb_begin(&packet, TRACE_PACKET_FOR_TESTING);
    pb_put_str(&packet, TEST_EVENT_STR, text);
    pb_end(&packet, event);
    pb_put_raw_varint(&fragment, packet.n);
    pb_put_raw(&fragment, packet.p, packet.n);
    ck_assert_ptr_nonnull(p->memory);
    uint32_t id = p->n_chunks++;
    uint8_t *page = p->memory + id % PAGES * PAGE;
    uint32_t bitmap = (uint32_t)SHM_DIV1 << SHM_LAYOUT_SHIFT | SHM_COMPLETE;
    uint16_t head[4] = {(uint16_t)id, (uint16_t)(id >> 16), 1, 1};
    memcpy(page + SHM_PAGE_HEADER, head, sizeof head);
    memcpy(page + SHM_PAGE_HEADER + SHM_CHUNK_HEADER, fragment.p, fragment.n);
    memset(page + SHM_PAGE_HEADER + SHM_CHUNK_HEADER + fragment.n, 0, 64);
    memcpy(page, &bitmap, sizeof bitmap);
    snprintf(args, sizeof args, "1{1:%u 2:0 3:%u} 3:%llu", id % PAGES, (unsigned)target_buffer(p),
             (unsigned long long)flush);
    ck_assert(producer_ok(p, PRODUCER_COMMIT_DATA, args));
    pb_writer_free(&packet);
    pb_writer_free(&fragment);
}

void producer_flushed(struct producer *p)
{
    char args[64];
    uint64_t id = producer_number(p, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_REQUEST_ID);
    snprintf(args, sizeof args, "3:%llu", (unsigned long long)id);
    ck_assert(producer_ok(p, PRODUCER_COMMIT_DATA, args));
}
