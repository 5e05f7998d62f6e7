/* The producer's end of the ProducerPort. */
#include "capture/shm/producer_link.h"

#include "base/vec.h"
#include "capture/ipc/addr.h"
#include "capture/ipc/client.h"
#include "wire/fields.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Over slow links: unsent commits up to this stay in the socket's queue, the rest waits in the shared buffer, where the
 * writers' policies know what to do when it is full. */
#define QUEUE_HIGH (1u << 20)

#define LAST_WAIT_MS      100
#define LAST_WAITS        50 /* 5 s in all */
#define RETRY_MIN_MS      100
#define SOCKET_SETTLES_MS 10 /* from the socket's file to listen() */

struct source {
    struct producer_data_source ds;
    char *name;
    uint8_t *extra;
};

struct sync {
    void (*fn)(void *ctx);
    void *ctx;
};

struct producer {
    uv_loop_t *loop;
    uv_timer_t retry;
    uv_timer_t hand_over;
    uv_async_t async;
    uv_idle_t soon;      /* reports a connect that failed at once */
    uv_fs_event_t watch; /* on the folder of the service's socket, while there is no connection */
    int open_handles;
    uv_thread_t thread; /* the loop's */
    struct producer_options o;
    char *name, *socket;
    uint8_t *identity;
    struct slice identity_bytes;
    const struct producer_ops *ops;
    void *ctx;
    struct ipc_client *client;
    struct shm_arbiter *arbiter;
    bool connected, emulated, closing, pumping;
    bool reported_unreachable; /* since the last connection */
    struct error open_error;   /* of the connect that failed at once */
    unsigned retry_ms;
    uint32_t page_size;
    VEC(struct source) sources;
    VEC(struct sync) syncs; /* producer_sync() calls without their answer */
    struct pb_writer args;
};

static void try_connect(struct producer *p);
static void pump(struct producer *p);

/* ---- shared memory ---- */

static void on_wake(void *ctx, bool urgent)
{
    struct producer *p = ctx;
    uv_thread_t self = uv_thread_self();
    if (urgent && uv_thread_equal(&self, &p->thread))
        pump(p);
    else
        uv_async_send(&p->async);
}

/* The service may have gone while this thread waits for it: the loop, which would notice, does not run then. */
static bool peer_is_gone(const struct producer *p)
{
    struct pollfd fd = {.fd = ipc_client_socket(p->client), .events = POLLRDHUP};
    return fd.fd < 0 || (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)));
}

static void on_stalled(void *ctx)
{
    struct producer *p = ctx;
    uv_thread_t self = uv_thread_self();
    if (!uv_thread_equal(&self, &p->thread)) {
        uv_async_send(&p->async);
        return;
    }
    pump(p);
    if (p->client && p->connected)
        ipc_client_drain(p->client, 10);
    if (p->arbiter && (!p->client || peer_is_gone(p)))
        shm_arbiter_shut(p->arbiter); /* else a writer would wait 30 s for each of its chunks */
}

static const struct shm_arbiter_ops arbiter_ops = {.wake = on_wake, .stalled = on_stalled};

static void drop_arbiter(struct producer *p)
{
    if (!p->arbiter)
        return;
    shm_arbiter_shut(p->arbiter);
    shm_arbiter_unref(p->arbiter);
    p->arbiter = NULL;
}

static void call(struct producer *p, unsigned method)
{
    if (p->client && !p->args.failed)
        ipc_client_invoke(p->client, method, pb_written(&p->args), -1, NULL, NULL);
    p->args.failed = false;
    pb_writer_clear(&p->args);
}

/* Sends what the arbiter has collected. */
static void pump(struct producer *p)
{
    static const unsigned methods[] = {[SHM_IPC_REGISTER_WRITER] = PRODUCER_REGISTER_TRACE_WRITER,
                                       [SHM_IPC_UNREGISTER_WRITER] = PRODUCER_UNREGISTER_TRACE_WRITER,
                                       [SHM_IPC_COMMIT] = PRODUCER_COMMIT_DATA};
    if (!p->arbiter || !p->connected || p->pumping)
        return;
    p->pumping = true;
    while (!p->emulated || ipc_client_queued(p->client) < QUEUE_HIGH) {
        pb_writer_clear(&p->args);
        enum shm_ipc kind = shm_arbiter_next_commit(p->arbiter, &p->args);
        if (kind == SHM_IPC_NONE)
            break;
        call(p, methods[kind]);
    }
    p->pumping = false;
}

static void on_hand_over(uv_timer_t *t);

static void arm_hand_over(struct producer *p)
{
    if (p->emulated && p->arbiter && p->ops->hand_over && !uv_is_active((uv_handle_t *)&p->hand_over) &&
        shm_arbiter_chunks_out(p->arbiter))
        uv_timer_start(&p->hand_over, on_hand_over, PRODUCER_HAND_OVER_MS, 0);
}

static void on_hand_over(uv_timer_t *t)
{
    struct producer *p = t->data;
    pump(p);
    if (p->arbiter && p->connected && ipc_client_queued(p->client) < QUEUE_HIGH) { /* else the link is behind anyway */
        producer_handed_over(p, p->ops->hand_over(p->ctx));
        pump(p);
    }
    arm_hand_over(p); /* for writers in the middle of a packet */
}

void producer_handed_over(struct producer *p, uint64_t whole_until_ns)
{
    if (!whole_until_ns || !p->arbiter)
        return;
    shm_arbiter_whole_until(p->arbiter, whole_until_ns);
    pump(p);
}

static void on_async(uv_async_t *a)
{
    struct producer *p = a->data;
    pump(p);
    arm_hand_over(p);
}

static void on_drained(void *ctx)
{
    pump(ctx);
}

/* ---- connection ---- */

static void on_retry(uv_timer_t *t)
{
    uv_fs_event_stop(&((struct producer *)t->data)->watch);
    try_connect(t->data);
}

/* Something happened to the socket: a service that begins should not wait for the next attempt. */
static void on_watch(uv_fs_event_t *w, const char *name, int events, int status)
{
    struct producer *p = w->data;
    const char *slash = strrchr(p->socket, '/');
    (void)events;
    if (status != 0 || !name || !slash || strcmp(name, slash + 1) != 0 || access(p->socket, F_OK) != 0)
        return;
    p->retry_ms = RETRY_MIN_MS;
    uv_timer_start(&p->retry, on_retry, SOCKET_SETTLES_MS, 0);
}

static void watch_socket(struct producer *p)
{
    const char *slash = strrchr(p->socket, '/');
    char folder[256];
    if (p->socket[0] != '/' || !slash || slash - p->socket >= (ptrdiff_t)sizeof folder)
        return; /* not a file: the timer alone */
    snprintf(folder, sizeof folder, "%.*s", (int)(slash == p->socket ? 1 : slash - p->socket), p->socket);
    uv_fs_event_start(&p->watch, on_watch, folder, 0); /* fails when there is no such folder: likewise */
}

static void lost(struct producer *p, const char *why)
{
    bool was = p->connected;
    if (!was && !p->o.no_retry && !p->closing && !p->reported_unreachable && p->ops->unreachable)
        p->ops->unreachable(p->ctx, p->socket, why);
    p->reported_unreachable = !was;
    ipc_client_close(p->client);
    p->client = NULL;
    p->connected = false;
    vec_clear(&p->syncs);
    drop_arbiter(p);
    if (!p->o.no_retry && !p->closing) {
        unsigned max = p->o.retry_max_ms ? p->o.retry_max_ms : 30000;
        uv_timer_start(&p->retry, on_retry, p->retry_ms, 0);
        watch_socket(p);
        p->retry_ms = p->retry_ms * 2 < max ? p->retry_ms * 2 : max;
    }
    if ((was || p->o.no_retry) && p->ops->disconnected)
        p->ops->disconnected(p->ctx, why);
}

static void on_disconnected(void *ctx, const char *why)
{
    lost(ctx, why);
}

static void put_descriptor(struct pb_writer *w, const struct producer_data_source *ds)
{
    pb_put_str(w, DATA_SOURCE_DESCRIPTOR_NAME, ds->name);
    if (ds->will_notify_on_stop)
        pb_put_varint(w, DATA_SOURCE_DESCRIPTOR_WILL_NOTIFY_ON_STOP, 1);
    if (ds->will_notify_on_start)
        pb_put_varint(w, DATA_SOURCE_DESCRIPTOR_WILL_NOTIFY_ON_START, 1);
    if (ds->handles_incremental_state_clear)
        pb_put_varint(w, DATA_SOURCE_DESCRIPTOR_HANDLES_INCREMENTAL_STATE_CLEAR, 1);
    if (ds->no_flush)
        pb_put_varint(w, DATA_SOURCE_DESCRIPTOR_NO_FLUSH, 1);
    pb_put_raw(w, ds->extra.p, ds->extra.len);
}

static void on_nothing(void *ctx, bool success, bool has_more, struct slice reply)
{
    (void)ctx;
    (void)success;
    (void)has_more;
    (void)reply;
}

static void announce(struct producer *p, const struct source *s, unsigned method)
{
    struct pb_writer d = {0};
    put_descriptor(&d, &s->ds);
    pb_put_bytes(&p->args, REGISTER_DATA_SOURCE_REQUEST_DATA_SOURCE_DESCRIPTOR, d.p, d.n);
    if (!d.failed && !p->args.failed)
        ipc_client_invoke(p->client, method, pb_written(&p->args), -1, on_nothing, NULL);
    pb_writer_clear(&p->args);
    pb_writer_free(&d);
}

static void setup_tracing(struct producer *p, const Mrd__GetAsyncCommandResponse__SetupTracing *m)
{
    int fd = ipc_client_take_fd(p->client);
    struct shm_region region;
    struct error err;
    uint32_t page_size = m->shared_buffer_page_size_kb * 1024;
    if (p->arbiter || !shm_page_size_ok(page_size))
        goto bad;
    if (fd < 0 && !p->emulated)
        goto bad;
    if (fd < 0 ? shm_region_private(&region, SHM_EMULATION_SIZE, &err) : shm_region_map(&region, fd, &err)) {
        if (p->ops->unreachable)
            p->ops->unreachable(p->ctx, p->socket, err.text);
        return;
    }
    p->emulated = fd < 0;
    if (region.size % page_size == 0 && region.size >= page_size)
        p->arbiter = shm_arbiter_new(&region, page_size, p->emulated, p->o.layout, &arbiter_ops, p);
    if (!p->arbiter)
        shm_region_close(&region);
    return;
bad:
    if (fd >= 0)
        close(fd);
}

static void flush(struct producer *p, const Mrd__GetAsyncCommandResponse__Flush *m)
{
    if (p->emulated && p->o.scraping_enabled && p->arbiter)
        shm_arbiter_scrape(p->arbiter);
    if (p->ops->flush)
        p->ops->flush(p->ctx, m->request_id, m->data_source_ids, m->n_data_source_ids, m->flags);
    else
        producer_flush_done(p, m->request_id);
}

static void on_command(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct producer *p = ctx;
    (void)has_more;
    if (!success)
        return;
    Mrd__GetAsyncCommandResponse *m = mrd__get_async_command_response__unpack(NULL, reply.len, reply.p);
    if (!m)
        return;
    switch (m->cmd_case) {
    case MRD__GET_ASYNC_COMMAND_RESPONSE__CMD_SETUP_TRACING:
        setup_tracing(p, m->setup_tracing);
        break;
    case MRD__GET_ASYNC_COMMAND_RESPONSE__CMD_SETUP_DATA_SOURCE:
        if (p->ops->setup && m->setup_data_source->config)
            p->ops->setup(p->ctx, m->setup_data_source->new_instance_id, m->setup_data_source->config);
        break;
    case MRD__GET_ASYNC_COMMAND_RESPONSE__CMD_START_DATA_SOURCE:
        if (p->ops->start && m->start_data_source->config)
            p->ops->start(p->ctx, m->start_data_source->new_instance_id, m->start_data_source->config);
        break;
    case MRD__GET_ASYNC_COMMAND_RESPONSE__CMD_STOP_DATA_SOURCE:
        if (p->ops->stop)
            p->ops->stop(p->ctx, m->stop_data_source->instance_id);
        break;
    case MRD__GET_ASYNC_COMMAND_RESPONSE__CMD_FLUSH:
        flush(p, m->flush);
        break;
    case MRD__GET_ASYNC_COMMAND_RESPONSE__CMD_CLEAR_INCREMENTAL_STATE:
        if (p->ops->clear_incremental_state)
            p->ops->clear_incremental_state(p->ctx, m->clear_incremental_state->data_source_ids,
                                            m->clear_incremental_state->n_data_source_ids);
        break;
    default:
        break;
    }
    mrd__get_async_command_response__free_unpacked(m, NULL);
}

static void on_initialized(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct producer *p = ctx;
    (void)has_more;
    if (!success)
        return;
    Mrd__InitializeConnectionResponse *m = mrd__initialize_connection_response__unpack(NULL, reply.len, reply.p);
    if (!m)
        return;
    p->emulated = m->use_shmem_emulation;
    mrd__initialize_connection_response__free_unpacked(m, NULL);
    p->connected = true;
    p->reported_unreachable = false;
    p->retry_ms = RETRY_MIN_MS;
    for (size_t i = 0; i < p->sources.n; i++)
        announce(p, &p->sources.p[i], PRODUCER_REGISTER_DATA_SOURCE);
    if (p->ops->connected)
        p->ops->connected(p->ctx);
}

/* Whoever made the socket gets what we can read: it must be somebody who could read it anyway. */
static bool is_trusted(const struct producer *p)
{
    struct ucred cred;
    struct sockaddr_storage addr;
    socklen_t n = sizeof cred, addr_n = sizeof addr;
    int fd = ipc_client_socket(p->client);
    if (!p->o.check_service || (getsockname(fd, (struct sockaddr *)&addr, &addr_n) == 0 && addr.ss_family != AF_UNIX))
        return true; /* other machines: the user has named them */
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 &&
           (cred.uid == 0 || cred.uid == geteuid() || cred.uid == p->o.service_uid);
}

static void on_bound(void *ctx)
{
    struct producer *p = ctx;
    if (!is_trusted(p)) {
        lost(p, "it runs as another user, which is not trusted (--service-user allows one more)");
        return;
    }
    struct pb_writer *w = &p->args;
    pb_writer_clear(w);
    if (p->o.page_size_hint)
        pb_put_varint(w, INITIALIZE_CONNECTION_REQUEST_SHARED_MEMORY_PAGE_SIZE_HINT_BYTES, p->o.page_size_hint);
    if (p->o.shm_size_hint)
        pb_put_varint(w, INITIALIZE_CONNECTION_REQUEST_SHARED_MEMORY_SIZE_HINT_BYTES, p->o.shm_size_hint);
    pb_put_str(w, INITIALIZE_CONNECTION_REQUEST_PRODUCER_NAME, p->name);
    pb_put_varint(w, INITIALIZE_CONNECTION_REQUEST_SMB_SCRAPING_MODE, p->o.scraping_enabled ? 1 : 2);
    pb_put_str(w, INITIALIZE_CONNECTION_REQUEST_SDK_VERSION, "Meridian v" MERIDIAN_VERSION);
    pb_put_varint(w, INITIALIZE_FIELD_SCRAPE_AT_END, SCRAPE_KEEPS_LENGTHS);
    if (p->o.reads_more)
        pb_put_varint(w, INITIALIZE_FIELD_READS_MORE, 1);
    ipc_client_invoke(p->client, PRODUCER_INITIALIZE_CONNECTION, pb_written(w), -1, on_initialized, p);
    ipc_client_invoke(p->client, PRODUCER_GET_ASYNC_COMMAND, slice_of(NULL, 0), -1, on_command, p);
    pb_writer_clear(w);
}

static const struct ipc_client_ops client_ops = {
    .bound = on_bound, .disconnected = on_disconnected, .drained = on_drained};

static void on_soon(uv_idle_t *i)
{
    uv_idle_stop(i);
    struct producer *p = i->data;
    lost(p, p->open_error.code ? p->open_error.text : "cannot connect");
}

static void try_connect(struct producer *p)
{
    const struct slice *id = p->identity ? &p->identity_bytes : NULL;
    if (ipc_client_open(&p->client, p->loop, p->socket, &ipc_producer_port, id, &client_ops, p, &p->open_error) != 0) {
        p->client = NULL;
        uv_idle_start(&p->soon, on_soon);
    }
}

static void free_source(struct source *s)
{
    mem_free(s->name);
    mem_free(s->extra);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct producer *p = h->data;
    if (--p->open_handles > 0)
        return;
    for (size_t i = 0; i < p->sources.n; i++)
        free_source(&p->sources.p[i]);
    vec_free(&p->sources);
    vec_free(&p->syncs);
    pb_writer_free(&p->args);
    mem_free(p->name);
    mem_free(p->socket);
    mem_free(p->identity);
    mem_free(p);
}

/* The last chunks, and that they are the last. The other side has its time as long as it takes something at all. */
static void hand_over_rest(struct producer *p)
{
    if (!p->client)
        return;
    if (p->arbiter) {
        shm_arbiter_finish(p->arbiter);
    } else if (p->connected) {
        pb_put_varint(&p->args, COMMIT_FIELD_FINISHED, 1);
        call(p, PRODUCER_COMMIT_DATA);
    }
    for (unsigned i = 0; i < LAST_WAITS; i++) {
        pump(p);
        size_t before = ipc_client_queued(p->client);
        bool empty = ipc_client_drain(p->client, LAST_WAIT_MS);
        if (empty ? before == 0 : ipc_client_queued(p->client) >= before)
            break;
    }
}

void producer_close(struct producer *p)
{
    if (!p || p->closing)
        return;
    hand_over_rest(p);
    p->closing = true;
    ipc_client_close(p->client);
    p->client = NULL;
    p->connected = false;
    drop_arbiter(p);
    uv_close((uv_handle_t *)&p->retry, on_handle_closed);
    uv_close((uv_handle_t *)&p->hand_over, on_handle_closed);
    uv_close((uv_handle_t *)&p->async, on_handle_closed);
    uv_close((uv_handle_t *)&p->soon, on_handle_closed);
    uv_close((uv_handle_t *)&p->watch, on_handle_closed);
}

int producer_open(struct producer **out, uv_loop_t *loop, const struct producer_options *o,
                  const struct producer_ops *ops, void *ctx, struct error *err)
{
    char socket[256];
    struct ipc_addr addr;
    ipc_producer_socket_first(socket, sizeof socket);
    const char *address = o->socket ? o->socket : socket;
    int rc = ipc_addr_parse(&addr, address, err);
    if (rc)
        return rc;
    struct producer *p = mem_zalloc(sizeof *p);
    if (!p)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    p->loop = loop;
    p->o = *o;
    p->ops = ops;
    p->ctx = ctx;
    p->retry_ms = RETRY_MIN_MS;
    p->thread = uv_thread_self();
    p->name = mem_strdup(o->name);
    p->socket = mem_strdup(address);
    if (o->identity && (p->identity = mem_alloc(o->identity->len)) != NULL) {
        memcpy(p->identity, o->identity->p, o->identity->len);
        p->identity_bytes = slice_of(p->identity, o->identity->len);
    }
    uv_timer_init(loop, &p->retry);
    uv_timer_init(loop, &p->hand_over);
    uv_async_init(loop, &p->async, on_async);
    uv_idle_init(loop, &p->soon);
    uv_fs_event_init(loop, &p->watch);
    p->retry.data = p->hand_over.data = p->async.data = p->soon.data = p->watch.data = p;
    p->open_handles = 5;
    if (!p->name || !p->socket || (o->identity && !p->identity)) {
        producer_close(p);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    try_connect(p);
    *out = p;
    return 0;
}

/* ---- what the owner calls ---- */

static struct source *find_source(struct producer *p, const char *name)
{
    for (size_t i = 0; i < p->sources.n; i++)
        if (strcmp(p->sources.p[i].name, name) == 0)
            return &p->sources.p[i];
    return NULL;
}

static bool set_extra(struct source *s, struct slice extra)
{
    uint8_t *copy = NULL;
    if (extra.len && !(copy = mem_alloc(extra.len)))
        return false;
    if (extra.len)
        memcpy(copy, extra.p, extra.len);
    mem_free(s->extra);
    s->extra = copy;
    s->ds.extra = slice_of(copy, extra.len);
    return true;
}

int producer_register(struct producer *p, const struct producer_data_source *ds, struct error *err)
{
    if (find_source(p, ds->name))
        return error_set(err, -MRD_EEXISTS, "data source %s is registered already", ds->name);
    struct source s = {.ds = *ds, .name = mem_strdup(ds->name)};
    s.ds.name = s.name;
    if (!s.name || !set_extra(&s, ds->extra) || !vec_push(&p->sources, s)) {
        free_source(&s);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    if (p->connected)
        announce(p, vec_last(&p->sources), PRODUCER_REGISTER_DATA_SOURCE);
    return 0;
}

struct trace_writer *producer_new_writer(struct producer *p, uint16_t target_buffer, enum shm_policy policy)
{
    return p->arbiter ? trace_writer_new(p->arbiter, target_buffer, policy) : NULL;
}

struct shm_arbiter *producer_arbiter(struct producer *p)
{
    return p->arbiter;
}

static void notify(struct producer *p, unsigned method, uint64_t instance_id, struct slice report)
{
    if (!p->connected)
        return;
    pump(p); /* what was written before must not arrive after */
    pb_put_varint(&p->args, NOTIFY_DATA_SOURCE_STARTED_REQUEST_DATA_SOURCE_ID, instance_id);
    pb_put_raw(&p->args, report.p, report.len);
    call(p, method);
}

void producer_notify_started(struct producer *p, uint64_t instance_id)
{
    notify(p, PRODUCER_NOTIFY_DATA_SOURCE_STARTED, instance_id, slice_of(NULL, 0));
}

void producer_report_started(struct producer *p, uint64_t instance_id, struct slice report)
{
    notify(p, PRODUCER_NOTIFY_DATA_SOURCE_STARTED, instance_id, report);
}

void producer_notify_stopped(struct producer *p, uint64_t instance_id)
{
    notify(p, PRODUCER_NOTIFY_DATA_SOURCE_STOPPED, instance_id, slice_of(NULL, 0));
}

void producer_flush_done(struct producer *p, uint64_t request_id)
{
    if (p->arbiter) {
        shm_arbiter_ack_flush(p->arbiter, request_id);
        pump(p);
    } else if (p->connected) {
        pb_put_varint(&p->args, COMMIT_DATA_REQUEST_FLUSH_REQUEST_ID, request_id);
        call(p, PRODUCER_COMMIT_DATA);
    }
}

static void on_sync(void *ctx, bool success, bool has_more, struct slice reply)
{
    struct producer *p = ctx;
    (void)has_more;
    (void)reply;
    if (!p->syncs.n)
        return;
    struct sync s = p->syncs.p[0]; /* answers come in the order of the questions */
    memmove(p->syncs.p, p->syncs.p + 1, --p->syncs.n * sizeof s);
    if (success)
        s.fn(s.ctx);
}

bool producer_sync(struct producer *p, void (*fn)(void *ctx), void *ctx)
{
    if (!p->connected || !vec_push(&p->syncs, (struct sync){fn, ctx}))
        return false;
    pump(p);
    if (ipc_client_invoke(p->client, PRODUCER_SYNC, slice_of(NULL, 0), -1, on_sync, p))
        return true;
    p->syncs.n--;
    return false;
}

void producer_activate_triggers(struct producer *p, const char *const *names, size_t n)
{
    if (!p->connected)
        return;
    for (size_t i = 0; i < n; i++)
        pb_put_str(&p->args, ACTIVATE_TRIGGERS_REQUEST_TRIGGER_NAMES, names[i]);
    call(p, PRODUCER_ACTIVATE_TRIGGERS);
}

bool producer_is_connected(const struct producer *p)
{
    return p->connected;
}
void producer_commit_now(struct producer *p)
{
    pump(p);
}
