/* Decodes and encodes IPC frames. */
#include "capture/ipc/frame.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

static bool decode_message(struct ipc_frame *f, struct slice body)
{
    struct pb_cursor c = pb_cursor(body);
    struct pb_field p;
    while (pb_next(&c, &p)) {
        switch ((unsigned)f->kind << 8 | (p.id & 0xff)) {
        case IPC_BIND << 8 | IPC_FRAME_BIND_SERVICE_SERVICE_NAME:
        case IPC_REQUEST_ERROR << 8 | IPC_FRAME_REQUEST_ERROR_ERROR:
            f->name = pb_bytes(&p);
            break;
        case IPC_BIND_REPLY << 8 | IPC_FRAME_BIND_SERVICE_REPLY_SUCCESS:
        case IPC_INVOKE_REPLY << 8 | IPC_FRAME_INVOKE_METHOD_REPLY_SUCCESS:
            f->success = pb_bool(&p);
            break;
        case IPC_BIND_REPLY << 8 | IPC_FRAME_BIND_SERVICE_REPLY_SERVICE_ID:
        case IPC_INVOKE << 8 | IPC_FRAME_INVOKE_METHOD_SERVICE_ID:
            f->service_id = pb_u32(&p);
            break;
        case IPC_INVOKE << 8 | IPC_FRAME_INVOKE_METHOD_METHOD_ID:
            f->method_id = pb_u32(&p);
            break;
        case IPC_INVOKE << 8 | IPC_FRAME_INVOKE_METHOD_ARGS_PROTO:
        case IPC_INVOKE_REPLY << 8 | IPC_FRAME_INVOKE_METHOD_REPLY_REPLY_PROTO:
            f->payload = pb_bytes(&p);
            break;
        case IPC_INVOKE << 8 | IPC_FRAME_INVOKE_METHOD_DROP_REPLY:
            f->drop_reply = pb_bool(&p);
            break;
        case IPC_INVOKE_REPLY << 8 | IPC_FRAME_INVOKE_METHOD_REPLY_HAS_MORE:
            f->has_more = pb_bool(&p);
            break;
        case IPC_PEER_IDENTITY << 8 | IPC_FRAME_SET_PEER_IDENTITY_PID:
            f->pid = pb_i32(&p);
            break;
        case IPC_PEER_IDENTITY << 8 | IPC_FRAME_SET_PEER_IDENTITY_UID:
            f->uid = pb_i32(&p);
            break;
        case IPC_PEER_IDENTITY << 8 | IPC_FRAME_SET_PEER_IDENTITY_MACHINE_ID_HINT:
            f->name = pb_bytes(&p);
            break;
        case IPC_PEER_IDENTITY << 8 | IPC_FRAME_SET_PEER_IDENTITY_MACHINE_NAME:
            f->name2 = pb_bytes(&p);
            break;
        }
    }
    if (f->kind == IPC_BIND_REPLY)
        f->payload = body;
    return !c.bad;
}

bool ipc_frame_decode(struct slice bytes, struct ipc_frame *f)
{
    static const uint8_t kinds[] = {
        [IPC_FRAME_MSG_BIND_SERVICE] = IPC_BIND,           [IPC_FRAME_MSG_BIND_SERVICE_REPLY] = IPC_BIND_REPLY,
        [IPC_FRAME_MSG_INVOKE_METHOD] = IPC_INVOKE,        [IPC_FRAME_MSG_INVOKE_METHOD_REPLY] = IPC_INVOKE_REPLY,
        [IPC_FRAME_MSG_REQUEST_ERROR] = IPC_REQUEST_ERROR, [IPC_FRAME_SET_PEER_IDENTITY] = IPC_PEER_IDENTITY,
    };
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field p;
    struct slice body = {0};
    *f = (struct ipc_frame){.pid = -1, .uid = -1};
    while (pb_next(&c, &p)) {
        if (p.id == IPC_FRAME_REQUEST_ID) {
            f->request_id = pb_u64(&p);
        } else if (p.id >= IPC_FRAME_MSG_BIND_SERVICE && p.id <= IPC_FRAME_SET_PEER_IDENTITY && p.wire == PB_BYTES) {
            f->kind = kinds[p.id]; /* of a oneof the last one counts */
            body = pb_bytes(&p);
        }
    }
    return !c.bad && (f->kind == IPC_UNKNOWN || decode_message(f, body));
}

bool ipc_frame_next_method(struct slice *at, uint32_t *id, struct slice *name)
{
    struct pb_cursor c = pb_cursor(*at);
    struct pb_field p, q;
    while (pb_next(&c, &p)) {
        if (p.id != IPC_FRAME_BIND_SERVICE_REPLY_METHODS || p.wire != PB_BYTES)
            continue;
        *id = 0;
        *name = slice_of(NULL, 0);
        for (struct pb_cursor m = pb_sub(&p); pb_next(&m, &q);) {
            if (q.id == IPC_FRAME_BIND_SERVICE_REPLY_METHOD_INFO_ID)
                *id = pb_u32(&q);
            else if (q.id == IPC_FRAME_BIND_SERVICE_REPLY_METHOD_INFO_NAME)
                *name = pb_bytes(&q);
        }
        *at = slice_of(c.p, (size_t)(c.end - c.p));
        return true;
    }
    return false;
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static void put_tag(struct pb_writer *w, uint32_t id, size_t len)
{
    pb_put_raw_varint(w, id << 3 | PB_BYTES);
    pb_put_raw_varint(w, len);
}

void ipc_put_bind(struct pb_writer *w, uint64_t request_id, const char *service)
{
    pb_put_varint(w, IPC_FRAME_REQUEST_ID, request_id);
    put_tag(w, IPC_FRAME_MSG_BIND_SERVICE, 1 + varint_size(strlen(service)) + strlen(service));
    pb_put_str(w, IPC_FRAME_BIND_SERVICE_SERVICE_NAME, service);
}

void ipc_put_bind_reply(struct pb_writer *w, uint64_t request_id, uint32_t service_id, const char *const *methods,
                        unsigned n_methods)
{
    size_t len = 0;
    for (unsigned i = 0; service_id && i < n_methods; i++) {
        size_t name = strlen(methods[i]), entry = 1 + varint_size(i + 1) + 1 + varint_size(name) + name;
        len += 1 + varint_size(entry) + entry;
    }
    if (service_id)
        len += 2 + 1 + varint_size(service_id);
    pb_put_varint(w, IPC_FRAME_REQUEST_ID, request_id);
    /* the other implementation leaves four bytes for the length of all but the shortest messages: so do we, to the byte
     */
    size_t mark = 0;
    if (len > 126)
        mark = pb_begin(w, IPC_FRAME_MSG_BIND_SERVICE_REPLY);
    else
        put_tag(w, IPC_FRAME_MSG_BIND_SERVICE_REPLY, len);
    if (service_id) {
        pb_put_varint(w, IPC_FRAME_BIND_SERVICE_REPLY_SUCCESS, 1);
        pb_put_varint(w, IPC_FRAME_BIND_SERVICE_REPLY_SERVICE_ID, service_id);
    }
    for (unsigned i = 0; service_id && i < n_methods; i++) {
        size_t name = strlen(methods[i]);
        put_tag(w, IPC_FRAME_BIND_SERVICE_REPLY_METHODS, 1 + varint_size(i + 1) + 1 + varint_size(name) + name);
        pb_put_varint(w, IPC_FRAME_BIND_SERVICE_REPLY_METHOD_INFO_ID, i + 1);
        pb_put_bytes(w, IPC_FRAME_BIND_SERVICE_REPLY_METHOD_INFO_NAME, methods[i], name);
    }
    if (len > 126)
        pb_end(w, mark);
}

void ipc_put_invoke(struct pb_writer *w, uint64_t request_id, uint32_t service_id, uint32_t method_id,
                    struct slice args, bool drop_reply)
{
    size_t len = 1 + varint_size(service_id) + 1 + varint_size(method_id) + 1 + varint_size(args.len) + args.len + 2;
    pb_put_varint(w, IPC_FRAME_REQUEST_ID, request_id);
    put_tag(w, IPC_FRAME_MSG_INVOKE_METHOD, len);
    pb_put_varint(w, IPC_FRAME_INVOKE_METHOD_SERVICE_ID, service_id);
    pb_put_varint(w, IPC_FRAME_INVOKE_METHOD_METHOD_ID, method_id);
    pb_put_bytes(w, IPC_FRAME_INVOKE_METHOD_ARGS_PROTO, args.p, args.len);
    pb_put_varint(w, IPC_FRAME_INVOKE_METHOD_DROP_REPLY, drop_reply);
}

void ipc_put_invoke_reply(struct pb_writer *w, uint64_t request_id, bool success, bool has_more, struct slice reply)
{
    size_t len = 4 + (success ? 1 + varint_size(reply.len) + reply.len : 0);
    pb_put_varint(w, IPC_FRAME_REQUEST_ID, request_id);
    put_tag(w, IPC_FRAME_MSG_INVOKE_METHOD_REPLY, len);
    pb_put_varint(w, IPC_FRAME_INVOKE_METHOD_REPLY_SUCCESS, success);
    pb_put_varint(w, IPC_FRAME_INVOKE_METHOD_REPLY_HAS_MORE, has_more);
    if (success)
        pb_put_bytes(w, IPC_FRAME_INVOKE_METHOD_REPLY_REPLY_PROTO, reply.p, reply.len);
}

void ipc_put_request_error(struct pb_writer *w, uint64_t request_id, const char *text)
{
    pb_put_varint(w, IPC_FRAME_REQUEST_ID, request_id);
    put_tag(w, IPC_FRAME_MSG_REQUEST_ERROR, 1 + varint_size(strlen(text)) + strlen(text));
    pb_put_str(w, IPC_FRAME_REQUEST_ERROR_ERROR, text);
}

void ipc_put_peer_identity(struct pb_writer *w, int32_t pid, int32_t uid, const char *machine_id_hint,
                           const char *machine_name)
{
    struct pb_writer m = {0};
    pb_put_i64(&m, IPC_FRAME_SET_PEER_IDENTITY_PID, pid);
    pb_put_i64(&m, IPC_FRAME_SET_PEER_IDENTITY_UID, uid);
    if (machine_id_hint && *machine_id_hint)
        pb_put_str(&m, IPC_FRAME_SET_PEER_IDENTITY_MACHINE_ID_HINT, machine_id_hint);
    if (machine_name && *machine_name)
        pb_put_str(&m, IPC_FRAME_SET_PEER_IDENTITY_MACHINE_NAME, machine_name);
    pb_put_varint(w, IPC_FRAME_REQUEST_ID, 0);
    pb_put_bytes(w, IPC_FRAME_SET_PEER_IDENTITY, m.p, m.n);
    w->failed |= m.failed;
    pb_writer_free(&m);
}
