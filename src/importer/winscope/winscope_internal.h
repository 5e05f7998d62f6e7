/* What the files of this folder share: the state of a machine, messages as args, rectangles. */
#ifndef MERIDIAN_IMPORTER_WINSCOPE_WINSCOPE_INTERNAL_H
#define MERIDIAN_IMPORTER_WINSCOPE_WINSCOPE_INTERNAL_H

#include "importer/winscope/winscope.h"

#include "base/arena.h"
#include "base/u64map.h"
#include "wire/fields.h"

/* The messages whose fields become args. */
#define WINSCOPE_MESSAGES(X)                                                                                           \
    X(LAYERS_SNAPSHOT, "LayersSnapshotProto")                                                                          \
    X(LAYER, "LayerProto")                                                                                             \
    X(TRANSACTIONS, "TransactionTraceEntry")                                                                           \
    X(TRANSACTION, "TransactionState")                                                                                 \
    X(LAYER_STATE, "LayerState")                                                                                       \
    X(LAYER_CREATION, "LayerCreationArgs")                                                                             \
    X(DISPLAY_STATE, "DisplayState")                                                                                   \
    X(SHELL_TRANSITION, "ShellTransition")                                                                             \
    X(SHELL_HANDLERS, "ShellHandlerMappings")                                                                          \
    X(VIEW_CAPTURE, "ViewCapture")                                                                                     \
    X(VIEW, "ViewCapture.View")                                                                                        \
    X(IME_CLIENTS, "InputMethodClientsTraceProto")                                                                     \
    X(IME_SERVICE, "InputMethodServiceTraceProto")                                                                     \
    X(IME_MANAGER, "InputMethodManagerServiceTraceProto")                                                              \
    X(MOTION_EVENT, "AndroidMotionEvent")                                                                              \
    X(KEY_EVENT, "AndroidKeyEvent")                                                                                    \
    X(WINDOW_DISPATCH, "AndroidWindowInputDispatchEvent")                                                              \
    X(WINDOW_MANAGER, "WindowManagerTraceEntry")                                                                       \
    X(ROOT_CONTAINER, "RootWindowContainerProto")                                                                      \
    X(CHILD_CONTAINER, "WindowContainerChildProto")

enum winscope_message {
#define X(name, text) WINSCOPE_##name,
    WINSCOPE_MESSAGES(X)
#undef X
        WINSCOPE_N_MESSAGES
};

struct winscope_machine { /* what is behind a pointer is NULL until needed */
    struct machine_ctx *m;
    struct arena arena;              /* of payloads that do not stay mapped */
    struct u64map rects, transforms; /* hash -> row */
    struct u64map flag_sets;         /* changed properties -> number of the set */
    uint32_t identity;               /* row of the identity + 1 */
    struct protolog *protolog;
    struct transitions *transitions;
};

/* --- message_args.c --- */
/* Args that follow those of messages. They stay until the end, so that many messages may share them. */
struct winscope_extra {
    const struct arg *args;
    uint32_t n;
};
struct winscope_extra winscope_keep_args(struct packet *p, const struct arg_list *list);
/* The args of a message, decoded when a query asks. `extra`: NULL: none. */
argset winscope_args(struct packet *p, enum winscope_message type, struct slice bytes,
                     const struct winscope_extra *extra);
/* The same, decoded now: appended to *out. */
void winscope_decode(struct packet *p, enum winscope_message type, struct slice bytes, struct arg_list *out);
/* The place of a message's args, by which queries find all its fields: what base64_proto_id holds. */
static inline uint32_t winscope_proto_id(argset set)
{
    return set.plus_one - 1;
}
/* Announces the decoders. */
void winscope_args_open(struct importer *im);
/* The interned string that field `iid_field` of a view's message means. */
strid winscope_interned(struct seq_generation *g, uint32_t interned, uint64_t iid);

/* --- rects.c --- */
struct winscope_box {
    double x, y, w, h;
};
struct winscope_matrix {
    double dsdx, dtdx, tx, dtdy, dsdy, ty;
};
extern const struct winscope_matrix winscope_identity;
/* Rows of equal rectangles, matrices are shared. */
uint32_t winscope_rect_row(struct winscope_machine *w, struct winscope_box box);
uint32_t winscope_transform_row(struct winscope_machine *w, const struct winscope_matrix *t);
/* RectProto, by its corners. */
struct winscope_box winscope_read_rect(struct slice bytes);
struct winscope_matrix winscope_read_transform(struct slice bytes, struct slice position);

static inline struct winscope_machine *winscope_of(const struct packet *p)
{
    return p->m->winscope;
}

static inline strid winscope_text(struct machine_ctx *m, struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? import_slice(m->im, pb_bytes(&f)) : 0;
}

static inline struct slice winscope_sub(struct slice message, uint32_t field)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
}

/* Counts a message that is damaged; what stands before the damage is in its row. */
static inline void winscope_count_damage(struct packet *p, struct slice message, enum stat_key stat)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f))
        continue;
    if (c.bad)
        stats_add(&p->m->st->stats, p->m->id, stat, 1);
}

/* A number of a message, `absent` when it is not there. */
static inline int64_t winscope_number(struct slice message, uint32_t field, int64_t absent)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? pb_i64(&f) : absent;
}

void view_capture_parse(struct packet *p, struct slice bytes);
void input_event_parse(struct packet *p, struct slice bytes);
void window_manager_parse(struct packet *p, struct slice bytes);
void layers_snapshot_parse(struct packet *p);
void transactions_parse(struct packet *p);
void shell_transition_parse(struct packet *p);
void shell_handlers_parse(struct packet *p);
void transitions_finish(struct winscope_machine *w);
void transitions_close(struct transitions *t);
enum tokenize_result protolog_config_tokenize(struct packet *p);
void protolog_parse(struct packet *p);
void protolog_close(struct protolog *l);

#endif
