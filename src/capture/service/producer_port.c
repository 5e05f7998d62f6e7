/* What producers ask of the service. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#include <unistd.h>

#define MAX_SOURCES_PER_PRODUCER 4096

static struct service_producer *producer_of(struct ipc_peer *peer)
{
    return ipc_peer_data(peer, &ipc_producer_port);
}

static void reply_refused(struct ipc_call call)
{
    ipc_reply(&call, false, false, slice_of(NULL, 0), -1);
}
static void reply_ok(struct ipc_call call)
{
    ipc_reply(&call, true, false, slice_of(NULL, 0), -1);
}

static uint16_t new_producer_id(struct service *svc)
{
    for (unsigned i = 0; i < UINT16_MAX; i++) {
        svc->last_producer_id = svc->last_producer_id == UINT16_MAX ? 1 : (uint16_t)(svc->last_producer_id + 1);
        if (!service_find_producer(svc, svc->last_producer_id))
            return svc->last_producer_id;
    }
    return 0;
}

static void free_registered(struct registered_source *r)
{
    mem_free(r->name);
    mem_free(r->descriptor);
}

static void free_producer(struct service_producer *p)
{
    for (size_t i = 0; i < p->sources.n; i++)
        free_registered(&p->sources.p[i]);
    vec_free(&p->sources);
    u64map_free(&p->writers);
    u64map_free(&p->allowed_buffers);
    shm_region_close(&p->shm);
    if (p->given_fd >= 0)
        close(p->given_fd);
    mem_free(p->name);
    mem_free(p->sdk_version);
    mem_free(p);
}

/* Long: what a producer says of itself, each part checked before the next. */
static void initialize(struct service *svc, struct ipc_call call, struct slice args)
{
    const struct ipc_identity *id = ipc_peer_identity(call.peer);
    if (producer_of(call.peer)) { /* a second InitializeConnection */
        reply_refused(call);
        return;
    }
    Mrd__InitializeConnectionRequest *m = mrd__initialize_connection_request__unpack(NULL, args.len, args.p);
    uint16_t producer_id = m ? new_producer_id(svc) : 0;
    const char *why = !m                                                         ? "malformed request"
                      : !producer_id                                             ? "too many producers"
                      : svc->lockdown && (id->uid != svc->uid || id->machine_id) ? "locked down"
                                                                                 : NULL;
    struct service_producer *p = why ? NULL : mem_zalloc(sizeof *p);
    if (p) {
        p->name = mem_strdup(m->producer_name ? m->producer_name : "");
        p->sdk_version = mem_strdup(m->sdk_version ? m->sdk_version : "");
        p->given_fd = -1;
        p->shm.fd = -1;
    }
    if (!p || !p->name || !p->sdk_version || !vec_push(&svc->producers, p)) {
        log_line("traced: refused producer %s: %s", ipc_peer_name(call.peer), why ? why : "out of memory");
        if (p)
            free_producer(p);
        if (m)
            mrd__initialize_connection_request__free_unpacked(m, NULL);
        reply_refused(call);
        return;
    }
    p->service = svc;
    p->peer = call.peer;
    p->id = producer_id;
    p->emulated = !ipc_host_is_local(ipc_peer_host(call.peer));
    p->page_hint = m->shared_memory_page_size_hint_bytes;
    p->size_hint = m->shared_memory_size_hint_bytes;
    p->scraping =
        m->smb_scraping_mode == MRD__INITIALIZE_CONNECTION_REQUEST__PRODUCER_SMBSCRAPING_MODE__SMB_SCRAPING_ENABLED;
    struct pb_field at_end;
    p->scrape_at_end = pb_find(args, INITIALIZE_FIELD_SCRAPE_AT_END, &at_end) && pb_bool(&at_end);
    p->whole_known = p->scrape_at_end && pb_u64(&at_end) >= SCRAPE_WHOLE_KNOWN;
    p->tells_end = p->scrape_at_end && pb_u64(&at_end) >= SCRAPE_TELLS_END;
    p->keeps_lengths = p->scrape_at_end && pb_u64(&at_end) >= SCRAPE_KEEPS_LENGTHS;
    p->reads_more = pb_find(args, INITIALIZE_FIELD_READS_MORE, &at_end) && pb_bool(&at_end);
    if (m->producer_provided_shmem && !p->emulated)
        p->given_fd = ipc_peer_take_fd(call.peer);
    mrd__initialize_connection_request__free_unpacked(m, NULL);
    if (p->given_fd >= 0) { /* looked at now, so that the reply can tell */
        struct error err;
        int fd = p->given_fd;
        p->given_fd = -1;
        if (shm_region_map(&p->shm, fd, &err) != 0)
            log_line("traced: producer %u \"%s\": shared memory refused: %s", p->id, p->name, err.text);
    }
    svc->producers_seen = p->id;
    ipc_peer_set_data(call.peer, &ipc_producer_port, p);
    p->initialized = true;
    p->connected_ns = clock_boot_ns();
    log_line("traced: producer %u \"%s\" connected: %s%s%s", p->id, p->name, ipc_peer_name(call.peer),
             id->machine_id ? ", machine " : "", id->machine_id ? id->machine_name : "");
    struct pb_writer *w = &svc->scratch;
    pb_writer_clear(w);
    pb_put_varint(w, INITIALIZE_CONNECTION_RESPONSE_USING_SHMEM_PROVIDED_BY_PRODUCER, p->shm.p != NULL);
    pb_put_varint(w, INITIALIZE_CONNECTION_RESPONSE_DIRECT_SMB_PATCHING_SUPPORTED, 1);
    pb_put_varint(w, INITIALIZE_CONNECTION_RESPONSE_USE_SHMEM_EMULATION, p->emulated);
    ipc_reply(&call, true, false, pb_written(w), -1);
}

static struct registered_source *find_source(struct service_producer *p, const char *name, uint64_t id)
{
    for (size_t i = 0; i < p->sources.n; i++)
        if (strcmp(p->sources.p[i].name, name) == 0 && (!id || p->sources.p[i].id == id))
            return &p->sources.p[i];
    return NULL;
}

static bool fill_source(struct registered_source *r, const Mrd__DataSourceDescriptor *d)
{
    size_t len = mrd__data_source_descriptor__get_packed_size(d);
    uint8_t *bytes = mem_alloc(len ? len : 1);
    if (!bytes)
        return false;
    mrd__data_source_descriptor__pack(d, bytes);
    mem_free(r->descriptor);
    r->descriptor = bytes;
    r->descriptor_len = len;
    r->id = d->id;
    r->will_notify_on_start = d->will_notify_on_start;
    r->will_notify_on_stop = d->will_notify_on_stop;
    r->handles_clear = d->handles_incremental_state_clear;
    r->no_flush = d->no_flush;
    return true;
}

static void register_source(struct service_producer *p, struct ipc_call call, struct slice args)
{
    Mrd__RegisterDataSourceRequest *m = mrd__register_data_source_request__unpack(NULL, args.len, args.p);
    Mrd__DataSourceDescriptor *d = m ? m->data_source_descriptor : NULL;
    if (!d || !d->name || !*d->name || p->sources.n >= MAX_SOURCES_PER_PRODUCER) {
        log_line("traced: producer %u \"%s\": data source refused", p->id, p->name);
        if (m)
            mrd__register_data_source_request__free_unpacked(m, NULL);
        reply_refused(call);
        return;
    }
    struct registered_source r = {.name = mem_strdup(d->name)};
    if (!r.name || !fill_source(&r, d) || !vec_push(&p->sources, r)) {
        free_registered(&r);
        mrd__register_data_source_request__free_unpacked(m, NULL);
        reply_refused(call);
        return;
    }
    mrd__register_data_source_request__free_unpacked(m, NULL);
    reply_ok(call);
    struct service *svc = p->service;
    for (size_t i = 0; i < svc->sessions.n; i++) {
        struct session *s = svc->sessions.p[i];
        if (s->state == SESSION_CONFIGURED || s->state == SESSION_STARTED)
            session_add_source(s, p, &r);
    }
}

static void update_source(struct service_producer *p, struct ipc_call call, struct slice args)
{
    Mrd__UpdateDataSourceRequest *m = mrd__update_data_source_request__unpack(NULL, args.len, args.p);
    Mrd__DataSourceDescriptor *d = m ? m->data_source_descriptor : NULL;
    struct registered_source *r = d && d->name && d->id ? find_source(p, d->name, d->id) : NULL;
    bool ok = r && fill_source(r, d);
    if (m)
        mrd__update_data_source_request__free_unpacked(m, NULL);
    if (ok)
        reply_ok(call);
    else
        reply_refused(call);
}

static void unregister_source(struct service_producer *p, struct ipc_call call, struct slice args)
{
    Mrd__UnregisterDataSourceRequest *m = mrd__unregister_data_source_request__unpack(NULL, args.len, args.p);
    struct registered_source *r = m && m->data_source_name ? find_source(p, m->data_source_name, 0) : NULL;
    if (r) {
        for (size_t i = 0; i < p->service->sessions.n; i++)
            session_remove_source(p->service->sessions.p[i], p, r->name);
        free_registered(r);
        *r = *vec_last(&p->sources);
        p->sources.n--;
    }
    if (m)
        mrd__unregister_data_source_request__free_unpacked(m, NULL);
    reply_ok(call);
}

/* The value of field 1 (and 2) of a small request. */
static bool read_ids(struct slice args, uint64_t *a, uint64_t *b)
{
    struct pb_cursor c = pb_cursor(args);
    struct pb_field f;
    *a = *b = 0;
    while (pb_next(&c, &f)) {
        if (f.id == REGISTER_TRACE_WRITER_REQUEST_TRACE_WRITER_ID)
            *a = pb_u64(&f);
        else if (f.id == REGISTER_TRACE_WRITER_REQUEST_TARGET_BUFFER)
            *b = pb_u64(&f);
    }
    return !c.bad;
}

static void register_writer(struct service_producer *p, struct ipc_call call, struct slice args)
{
    uint64_t writer, buffer;
    bool ok = read_ids(args, &writer, &buffer) && writer >= 1 && writer <= SHM_MAX_WRITER_ID && buffer <= UINT16_MAX &&
              u64map_set(&p->writers, writer, buffer);
    if (ok)
        reply_ok(call);
    else
        reply_refused(call);
}

static void notify(struct service_producer *p, struct ipc_call call, struct slice args, bool started)
{
    uint64_t id, unused;
    struct service *svc = p->service;
    if (!read_ids(args, &id, &unused)) {
        reply_refused(call);
        return;
    }
    reply_ok(call);
    for (size_t i = 0; i < svc->sessions.n; i++) {
        struct session *s = svc->sessions.p[i];
        for (size_t k = 0; k < s->instances.n; k++) {
            struct instance *in = s->instances.p[k];
            if (in->id != id || in->producer != p) /* only the owner may speak for an instance */
                continue;
            if (started)
                relay_producer_heard(p);
            if (started)
                session_instance_started(s, in, args);
            else
                session_instance_stopped(s, in);
            return;
        }
    }
}

static void activate_triggers(struct service_producer *p, struct ipc_call call, struct slice args)
{
    uint32_t uid = ipc_peer_identity(p->peer)->uid;
    Mrd__ActivateTriggersRequest *m = mrd__activate_triggers_request__unpack(NULL, args.len, args.p);
    if (!m) {
        reply_refused(call);
        return;
    }
    reply_ok(call);
    for (size_t i = 0; i < m->n_trigger_names; i++)
        service_trigger(p->service, m->trigger_names[i], p->name, uid);
    mrd__activate_triggers_request__free_unpacked(m, NULL);
}

void producer_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args)
{
    struct service *svc = ctx;
    struct service_producer *p = producer_of(call.peer);
    uint64_t a, b;
    if (method == PRODUCER_INITIALIZE_CONNECTION) {
        initialize(svc, call, args);
        return;
    }
    if (!p) { /* in relayed and direct connections alike GetAsyncCommand may come before the reply, not before the
                 request */
        reply_refused(call);
        return;
    }
    switch (method) {
    case PRODUCER_REGISTER_DATA_SOURCE:
        register_source(p, call, args);
        break;
    case PRODUCER_UPDATE_DATA_SOURCE:
        update_source(p, call, args);
        break;
    case PRODUCER_UNREGISTER_DATA_SOURCE:
        unregister_source(p, call, args);
        break;
    case PRODUCER_COMMIT_DATA:
        commit_data(p, args);
        reply_ok(call);
        break;
    case PRODUCER_GET_ASYNC_COMMAND:
        p->commands = call;
        break;
    case PRODUCER_REGISTER_TRACE_WRITER:
        register_writer(p, call, args);
        break;
    case PRODUCER_UNREGISTER_TRACE_WRITER:
        if (read_ids(args, &a, &b))
            u64map_del(&p->writers, a);
        reply_ok(call);
        break;
    case PRODUCER_NOTIFY_DATA_SOURCE_STARTED:
        notify(p, call, args, true);
        break;
    case PRODUCER_NOTIFY_DATA_SOURCE_STOPPED:
        notify(p, call, args, false);
        break;
    case PRODUCER_ACTIVATE_TRIGGERS:
        activate_triggers(p, call, args);
        break;
    case PRODUCER_SYNC:
        reply_ok(call);
        break;
    default:
        reply_refused(call);
    }
}

void producer_port_disconnected(void *ctx, struct ipc_peer *peer)
{
    struct service *svc = ctx;
    struct service_producer *p = producer_of(peer);
    if (!p)
        return;
    ipc_peer_set_data(peer, &ipc_producer_port, NULL);
    p->commands.peer = NULL;
    for (size_t i = 0; i < svc->sessions.n; i++) {
        commit_take_over(p, svc->sessions.p[i]);
        session_remove_producer(svc->sessions.p[i], p);
    }
    for (size_t i = 0; i < svc->producers.n; i++) {
        if (svc->producers.p[i] == p) {
            memmove(&svc->producers.p[i], &svc->producers.p[i + 1], (svc->producers.n - i - 1) * sizeof p);
            svc->producers.n--;
            break;
        }
    }
    log_line("traced: producer %u \"%s\" disconnected", p->id, p->name);
    free_producer(p);
}

void producer_send_command(struct service_producer *p, unsigned field, struct slice body, int fd)
{
    struct pb_writer *w = &p->service->scratch;
    pb_writer_clear(w);
    pb_put_bytes(w, field, body.p, body.len);
    if (!w->failed)
        ipc_reply(&p->commands, true, true, pb_written(w), fd);
    w->failed = false;
}

/* The config's entry for the producer goes before the producer's own hints, and those before the defaults. Sizes that
 * do not fit each other become the defaults. */
static void choose_sizes(const struct service_producer *p, const Mrd__TraceConfig *config, uint32_t *page,
                         uint32_t *size)
{
    uint64_t page_size = p->page_hint, shm_size = p->size_hint;
    for (size_t i = 0; i < config->n_producers; i++) {
        const Mrd__TraceConfig__ProducerConfig *c = config->producers[i];
        if (!c->producer_name || strcmp(c->producer_name, p->name) != 0)
            continue;
        if (c->page_size_kb)
            page_size = (uint64_t)c->page_size_kb * 1024;
        if (c->shm_size_kb)
            shm_size = (uint64_t)c->shm_size_kb * 1024;
    }
    if (!page_size)
        page_size = SHM_DEFAULT_PAGE;
    if (!shm_size)
        shm_size = SHM_DEFAULT_SIZE;
    if (page_size > SHM_MAX_PAGE_SIZE)
        page_size = SHM_MAX_PAGE_SIZE;
    if (shm_size > SHM_MAX_SIZE)
        shm_size = SHM_MAX_SIZE;
    if (!shm_page_size_ok((uint32_t)page_size) || shm_size < page_size || shm_size % page_size) {
        page_size = SHM_DEFAULT_PAGE;
        shm_size = SHM_DEFAULT_SIZE;
    }
    *page = (uint32_t)page_size;
    *size = (uint32_t)shm_size;
}

void producer_setup_tracing(struct service_producer *p, const Mrd__TraceConfig *config)
{
    if (p->tracing_set_up)
        return;
    p->tracing_set_up = true;
    uint32_t size;
    struct error err;
    choose_sizes(p, config, &p->page_size, &size);
    if (p->shm.p) { /* brought by the producer: its size counts */
        if (p->shm.size % p->page_size)
            p->page_size = SHM_DEFAULT_PAGE;
        if (p->shm.size % p->page_size) {
            log_line("traced: producer %u \"%s\": shared memory of %zu bytes cannot be used", p->id, p->name,
                     p->shm.size);
            shm_region_close(&p->shm);
            return;
        }
    } else if (!p->emulated && shm_region_create(&p->shm, size, &err) != 0) {
        log_line("traced: producer %u \"%s\": %s", p->id, p->name, err.text);
        return;
    }
    uint8_t body[8];
    size_t n = 0;
    body[n++] = GET_ASYNC_COMMAND_RESPONSE_SETUP_TRACING_SHARED_BUFFER_PAGE_SIZE_KB << 3;
    n += pb_encode_varint(body + n, p->page_size / 1024);
    producer_send_command(p, GET_ASYNC_COMMAND_RESPONSE_SETUP_TRACING, slice_of(body, n), p->emulated ? -1 : p->shm.fd);
}
