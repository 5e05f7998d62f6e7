/* Clones: a read-only copy of a running session, made after a flush. */
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#include <unistd.h>

#define CLONE_FLUSH_TIMEOUT_MS 10000

/* A clone that waits for its flush. */
struct pending_clone {
    struct service *service;
    struct service_consumer *consumer; /* NULL: went away meanwhile */
    struct ipc_peer *peer;
    struct ipc_call call;
    Mrd__CloneSessionRequest *req;
    int fd;
};

static void answer(const struct ipc_call *call, const struct session *clone, const char *error, bool into_file)
{
    struct pb_writer w = {0};
    pb_put_varint(&w, CLONE_SESSION_RESPONSE_SUCCESS, clone != NULL);
    if (error)
        pb_put_str(&w, CLONE_SESSION_RESPONSE_ERROR, error);
    if (clone) {
        pb_put_varint(&w, CLONE_SESSION_RESPONSE_UUID_MSB, clone->uuid_msb);
        pb_put_varint(&w, CLONE_SESSION_RESPONSE_UUID_LSB, clone->uuid_lsb);
        pb_put_varint(&w, CLONE_SESSION_RESPONSE_WAS_WRITE_INTO_FILE, into_file);
    }
    if (!w.failed)
        ipc_reply(call, true, false, pb_written(&w), -1);
    pb_writer_free(&w);
}

static char *copy_text(const char *s)
{
    return s ? mem_strdup(s) : NULL;
}

/* The running session goes on with an empty buffer; the old one, which is the caller's now. NULL without memory. */
static struct session_ring *take_buffer(struct session *s, size_t i)
{
    struct session_ring *old = s->buffers.p[i].buffer;
    struct session_ring *fresh = session_ring_new_like(old);
    if (!fresh || !u64map_set(&s->service->buffers, s->buffers.p[i].id, (uint64_t)(uintptr_t)fresh)) {
        session_ring_free(fresh);
        return NULL;
    }
    s->buffers.p[i].buffer = fresh;
    return old;
}

/* clear_before_clone: what comes with the flush is all that the clone shall have. */
static void clear_buffers(struct session *s)
{
    for (size_t i = 0; i < s->config->n_buffers; i++)
        if (s->config->buffers[i]->clear_before_clone)
            session_ring_free(take_buffer(s, i));
}

static bool copy_buffers(struct session *to, struct session *from)
{
    for (size_t i = 0; i < from->buffers.n; i++) {
        bool transfer = from->config->buffers[i]->transfer_on_clone;
        struct session_buffer b = {.id = 0};
        b.buffer = transfer ? take_buffer(from, i) : session_ring_clone(from->buffers.p[i].buffer);
        if (!b.buffer || !vec_push(&to->buffers, b)) {
            session_ring_free(b.buffer);
            return false;
        }
    }
    return true;
}

static struct session *copy_session(struct session *from, const Mrd__CloneSessionRequest *req, struct error *err)
{
    struct session *s = session_alloc(from->service, err);
    if (!s)
        return NULL;
    s->consumer_uid = from->consumer_uid;
    s->config = mrd__trace_config__unpack(NULL, from->config_bytes.len, from->config_bytes.p);
    uint8_t *bytes = mem_alloc(from->config_bytes.len + 1);
    if (bytes) {
        memcpy(bytes, from->config_bytes.p, from->config_bytes.len);
        s->config_bytes = slice_of(bytes, from->config_bytes.len);
    }
    if (!s->config || !bytes || !copy_buffers(s, from)) {
        error_set(err, -MRD_ENOMEM, "out of memory");
        session_free(s);
        return NULL;
    }
    session_set_state(s, SESSION_CLONED);
    s->uuid_msb = from->uuid_msb; /* a trace of its own needs a name of its own */
    s->uuid_lsb = from->uuid_lsb ^ (s->id * 0x9e3779b97f4a7c15u >> 2);
    s->started_realtime_ns = from->started_realtime_ns;
    s->initial_snapshot = from->initial_snapshot;
    s->has_initial_snapshot = from->has_initial_snapshot;
    memcpy(s->snapshots, from->snapshots, sizeof s->snapshots);
    s->n_snapshots = from->n_snapshots;
    s->last_snapshot = from->last_snapshot;
    s->want_sync_marker = s->want_stats = true;
    s->chunks_discarded = from->chunks_discarded;
    s->patches_discarded = from->patches_discarded;
    s->invalid_packets = from->invalid_packets;
    s->flushes_requested = from->flushes_requested;
    s->flushes_succeeded = from->flushes_succeeded;
    s->flushes_failed = from->flushes_failed;
    relay_copy_losses(s, from);
    problems_copy(s, from);
    problems_conclude(s);
    for (size_t i = 0; i < from->events.n; i++) {
        struct lifecycle_event e = from->events.p[i];
        if (e.body && (e.body = mem_alloc(e.body_len + 1)) != NULL)
            memcpy(e.body, from->events.p[i].body, e.body_len);
        if (!vec_push(&s->events, e))
            mem_free(e.body);
    }
    for (size_t i = 0; i < s->buffers.n; i++)
        session_lifecycle_value(s, LIFECYCLE_BUFFER_CLONED, (uint32_t)i);
    if (req->for_bugreport)
        session_lifecycle(s, LIFECYCLE_SEIZED_FOR_BUGREPORT, false);
    if (req->clone_trigger_name) {
        s->clone_trigger = mem_zalloc(sizeof *s->clone_trigger);
        if (s->clone_trigger) {
            s->clone_trigger->ts = req->clone_trigger_boot_time_ns ? req->clone_trigger_boot_time_ns : clock_boot_ns();
            s->clone_trigger->name = copy_text(req->clone_trigger_name);
            s->clone_trigger->producer_name = copy_text(req->clone_trigger_producer_name);
            s->clone_trigger->uid = (uint32_t)req->clone_trigger_trusted_producer_uid;
            s->clone_trigger->stop_delay_ms = req->clone_trigger_delay_ms;
        }
    }
    return s;
}

static void free_pending(struct pending_clone *pc)
{
    if (pc->fd >= 0)
        close(pc->fd);
    mrd__clone_session_request__free_unpacked(pc->req, NULL);
    mem_free(pc);
}

static bool consumer_is_here(const struct pending_clone *pc)
{
    bool here = false;
    for (size_t i = 0; i < pc->service->consumers.n; i++)
        here |= pc->service->consumers.p[i] == pc->consumer && pc->consumer->peer == pc->peer;
    return here;
}

/* All of the clone is in its file, or will never be. */
static void on_written(void *ctx, struct session *clone)
{
    struct pending_clone *pc = ctx;
    bool whole = !clone->file_error.code;
    clone->written = NULL;
    if (consumer_is_here(pc))
        answer(&pc->call, whole ? clone : NULL, whole ? NULL : clone->file_error.text, true);
    free_pending(pc);
}

static void after_flush(void *ctx, struct session *from, bool ok)
{
    struct pending_clone *pc = ctx;
    struct error err = {0};
    struct session *clone = NULL;
    (void)ok; /* what did not come in time is not in the clone; the stats tell */
    if (!consumer_is_here(pc)) {
        free_pending(pc);
        return;
    }
    if (from->closing)
        error_set(&err, -MRD_ENOTFOUND, "the session has ended");
    else if (pc->consumer->session)
        error_set(&err, -MRD_EINVALID, "this consumer has a session already");
    else
        clone = copy_session(from, pc->req, &err);
    if (clone) {
        clone->consumer = pc->consumer;
        pc->consumer->session = clone;
        log_line("traced: session %llu is a clone of %llu", (unsigned long long)clone->id,
                 (unsigned long long)from->id);
    }
    if (!clone || pc->fd < 0) {
        answer(&pc->call, clone, err.code ? err.text : NULL, false);
        free_pending(pc);
        return;
    }
    clone->fd = pc->fd;
    pc->fd = -1;
    clone->written = on_written;
    clone->written_ctx = pc;
    session_finish_file(clone);
    if (!clone->out)
        session_ended(clone);
}

static struct session *find_source(struct service_consumer *c, const Mrd__CloneSessionRequest *req)
{
    struct service *svc = c->service;
    struct session *best = NULL;
    for (size_t i = 0; i < svc->sessions.n; i++) {
        struct session *s = svc->sessions.p[i];
        if (s->state == SESSION_CLONED)
            continue;
        if (req->selector_case == MRD__CLONE_SESSION_REQUEST__SELECTOR_UNIQUE_SESSION_NAME) {
            if (s->config->unique_session_name && strcmp(s->config->unique_session_name, req->unique_session_name) == 0)
                return s;
        } else if (req->session_id == UINT64_MAX || req->for_bugreport) { /* the best for a bug report */
            if (s->config->bugreport_score > 0 && (!best || s->config->bugreport_score > best->config->bugreport_score))
                best = s;
        } else if (s->id == req->session_id) {
            return s;
        }
    }
    return best;
}

void session_clone(struct service_consumer *c, struct ipc_call call, const Mrd__CloneSessionRequest *request, int fd)
{
    uint32_t uid = ipc_peer_identity(c->peer)->uid;
    struct session *from = c->session ? NULL : find_source(c, request);
    const char *why = c->session ? "this consumer has a session already"
                      : !from    ? "there is no such session"
                      : from->consumer_uid != uid && uid != 0 && uid != c->service->uid
                          ? "the session belongs to another user"
                          : NULL;
    struct pending_clone *pc = why ? NULL : mem_zalloc(sizeof *pc);
    if (pc) { /* an own copy of the request */
        size_t len = mrd__clone_session_request__get_packed_size(request);
        uint8_t *bytes = mem_alloc(len + 1);
        if (bytes) {
            mrd__clone_session_request__pack(request, bytes);
            pc->req = mrd__clone_session_request__unpack(NULL, len, bytes);
            mem_free(bytes);
        }
    }
    if (!pc || !pc->req) {
        mem_free(pc);
        if (fd >= 0)
            close(fd);
        why = why ? why : "out of memory";
        log_line("traced: refused a clone to %s: %s", ipc_peer_name(c->peer), why);
        answer(&call, NULL, why, false);
        return;
    }
    pc->service = c->service;
    pc->consumer = c;
    pc->peer = c->peer;
    pc->call = call;
    pc->fd = fd;
    uint64_t flags = FLUSH_REASON_CLONE | FLUSH_BY_TRACED | (request->for_bugreport ? FLUSH_CLONE_BUGREPORT : 0);
    session_lifecycle(from, LIFECYCLE_CLONE_STARTED, true);
    if (from->state == SESSION_STARTED) {
        clear_buffers(from);
        session_flush(from, CLONE_FLUSH_TIMEOUT_MS, flags, after_flush, pc);
    } else {
        after_flush(pc, from, true);
    }
}
