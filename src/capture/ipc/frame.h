/* The frames of the IPC protocol: a little-endian u32 length, then that many bytes of an IPCFrame.
 *
 * Frames are walked and written by hand, not through protobuf-c: a commit costs no allocation this way. */
#ifndef MERIDIAN_CAPTURE_IPC_FRAME_H
#define MERIDIAN_CAPTURE_IPC_FRAME_H

#include "wire/pb_writer.h"

#include <stdbool.h>
#include <stdint.h>

/* Largest frame with its length in front; a peer that announces more is dropped. */
#define IPC_FRAME_MAX   (128u * 1024)
#define IPC_HEADER_SIZE 4u

enum ipc_frame_kind {
    IPC_UNKNOWN, /* none of the known messages inside */
    IPC_BIND,
    IPC_BIND_REPLY,
    IPC_INVOKE,
    IPC_INVOKE_REPLY,
    IPC_REQUEST_ERROR,
    IPC_PEER_IDENTITY,
};

/* One decoded frame; slices view the frame's bytes. */
struct ipc_frame {
    enum ipc_frame_kind kind;
    uint64_t request_id;
    struct slice name;    /* service of a bind; text of an error; machine_id_hint of an identity */
    struct slice name2;   /* machine_name of an identity */
    struct slice payload; /* arguments, reply, or (bind reply) the whole BindServiceReply */
    uint32_t service_id;
    uint32_t method_id;
    int32_t pid; /* identity; -1 when not given */
    int32_t uid;
    bool success;
    bool has_more;
    bool drop_reply;
};

/* Decodes the bytes behind the length; false when they are not a protobuf message. Unknown fields are skipped. */
bool ipc_frame_decode(struct slice bytes, struct ipc_frame *f);

/* Walks the methods of a bind reply: start with *at = its payload; false at the end. */
bool ipc_frame_next_method(struct slice *at, uint32_t *id, struct slice *name);

/* These append one frame without its length. */
void ipc_put_bind(struct pb_writer *w, uint64_t request_id, const char *service);
void ipc_put_bind_reply(struct pb_writer *w, uint64_t request_id, uint32_t service_id, const char *const *methods,
                        unsigned n_methods); /* service_id 0: no such service */
void ipc_put_invoke(struct pb_writer *w, uint64_t request_id, uint32_t service_id, uint32_t method_id,
                    struct slice args, bool drop_reply);
void ipc_put_invoke_reply(struct pb_writer *w, uint64_t request_id, bool success, bool has_more, struct slice reply);
void ipc_put_request_error(struct pb_writer *w, uint64_t request_id, const char *text);
void ipc_put_peer_identity(struct pb_writer *w, int32_t pid, int32_t uid, const char *machine_id_hint,
                           const char *machine_name);

#endif
