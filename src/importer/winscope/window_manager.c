/* Imports the window manager's states: a tree of containers, from the root over displays and tasks to windows. */
#include "importer/winscope/winscope_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { MAX_DEPTH = 64 };

/* Where a kind of container keeps what all containers have. */
struct kind {
    uint32_t field; /* of WindowContainerChildProto, 0: none */
    const char *name;
    enum winscope_message type;
    uint8_t path[4]; /* fields that lead to its WindowContainerProto, 0: the end */
};
enum { ROOT, CONTAINER, DISPLAY, AREA, TASK, FRAGMENT, ACTIVITY, TOKEN, WINDOW, KINDS };

static const struct kind kinds[KINDS] = {
    [ROOT] = {0, "RootWindowContainer", WINSCOPE_ROOT_CONTAINER, {ROOT_WINDOW_CONTAINER_PROTO_WINDOW_CONTAINER}},
    [CONTAINER] = {WINDOW_CONTAINER_CHILD_PROTO_WINDOW_CONTAINER, "WindowContainer", WINSCOPE_WINDOW_CONTAINER, {0}},
    [DISPLAY] = {WINDOW_CONTAINER_CHILD_PROTO_DISPLAY_CONTENT,
                 "DisplayContent",
                 WINSCOPE_DISPLAY_CONTENT,
                 {DISPLAY_CONTENT_PROTO_ROOT_DISPLAY_AREA, DISPLAY_AREA_PROTO_WINDOW_CONTAINER}},
    [AREA] = {WINDOW_CONTAINER_CHILD_PROTO_DISPLAY_AREA,
              "DisplayArea",
              WINSCOPE_DISPLAY_AREA,
              {DISPLAY_AREA_PROTO_WINDOW_CONTAINER}},
    [TASK] = {WINDOW_CONTAINER_CHILD_PROTO_TASK,
              "Task",
              WINSCOPE_TASK,
              {TASK_PROTO_TASK_FRAGMENT, TASK_FRAGMENT_PROTO_WINDOW_CONTAINER}},
    [FRAGMENT] = {WINDOW_CONTAINER_CHILD_PROTO_TASK_FRAGMENT,
                  "TaskFragment",
                  WINSCOPE_TASK_FRAGMENT,
                  {TASK_FRAGMENT_PROTO_WINDOW_CONTAINER}},
    [ACTIVITY] = {WINDOW_CONTAINER_CHILD_PROTO_ACTIVITY,
                  "Activity",
                  WINSCOPE_ACTIVITY,
                  {ACTIVITY_RECORD_PROTO_WINDOW_TOKEN, WINDOW_TOKEN_PROTO_WINDOW_CONTAINER}},
    [TOKEN] = {WINDOW_CONTAINER_CHILD_PROTO_WINDOW_TOKEN,
               "WindowToken",
               WINSCOPE_WINDOW_TOKEN,
               {WINDOW_TOKEN_PROTO_WINDOW_CONTAINER}},
    [WINDOW] = {WINDOW_CONTAINER_CHILD_PROTO_WINDOW,
                "WindowState",
                WINSCOPE_WINDOW_STATE,
                {WINDOW_STATE_PROTO_WINDOW_CONTAINER}},
};

struct container { /* read, until the whole tree is known to be sound */
    uint8_t kind;
    struct slice bytes, common; /* its message, and the WindowContainerProto in it */
    int64_t parent;             /* token, COL_NULL: the root */
    int64_t child_index;
};

struct tree {
    struct packet *p;
    VEC(struct container)
    list;
    bool broken;
    uint32_t snapshot;
    uint32_t transform;
    uint32_t display;    /* id of the display that the walk is in */
    uint32_t next_depth; /* of its next window */
};

static struct slice common_of(uint8_t kind, struct slice bytes)
{
    struct slice s = bytes;
    for (size_t i = 0; i < sizeof kinds[kind].path && kinds[kind].path[i]; i++)
        s = winscope_sub(s, kinds[kind].path[i]);
    /* Older tasks and displays hold it themselves. */
    if (!s.p && (kind == TASK || kind == DISPLAY))
        s = winscope_sub(bytes, TASK_PROTO_WINDOW_CONTAINER);
    return s;
}

static struct slice identifier_of(const struct container *k)
{
    struct slice s = k->kind == WINDOW ? winscope_sub(k->bytes, WINDOW_STATE_PROTO_IDENTIFIER) : (struct slice){0};
    return s.p ? s : winscope_sub(k->common, WINDOW_CONTAINER_PROTO_IDENTIFIER);
}

static int64_t token_of(const struct container *k)
{
    if (k->kind == TOKEN && winscope_number(k->bytes, WINDOW_TOKEN_PROTO_HASH_CODE, 0))
        return (int32_t)winscope_number(k->bytes, WINDOW_TOKEN_PROTO_HASH_CODE, 0);
    return (int32_t)winscope_number(identifier_of(k), IDENTIFIER_PROTO_HASH_CODE, 0);
}

/* Reads a container and, depth first, those inside it. */
static void walk(struct tree *t, uint8_t kind, struct slice bytes, int64_t parent, int64_t index, unsigned depth)
{
    struct container k = {kind, bytes, common_of(kind, bytes), parent, index};
    struct pb_field f, g;
    if (depth > MAX_DEPTH || (kind != TOKEN && !identifier_of(&k).p)) {
        t->broken = true;
        return;
    }
    int64_t token = token_of(&k);
    if (!vec_push(&t->list, k)) {
        t->p->m->im->failed = true;
        return;
    }
    struct pb_cursor c = pb_cursor(k.common);
    for (int64_t at = 0; pb_next(&c, &f) && !t->broken;) {
        if (f.id != WINDOW_CONTAINER_PROTO_CHILDREN)
            continue;
        struct pb_cursor child = pb_sub(&f);
        while (pb_next(&child, &g)) {
            uint8_t i = CONTAINER;
            while (i < KINDS && kinds[i].field != g.id)
                i++;
            if (i == KINDS || g.wire != PB_BYTES)
                continue;
            walk(t, i, pb_bytes(&g), token, at, depth + 1);
            break;
        }
        at++;
    }
}

static strid title_of(struct tree *t, const struct container *k)
{
    struct machine_ctx *m = t->p->m;
    struct pb_field f;
    switch (k->kind) {
    case DISPLAY:
        return winscope_text(m, winscope_sub(k->bytes, DISPLAY_CONTENT_PROTO_DISPLAY_INFO), DISPLAY_INFO_PROTO_NAME);
    case AREA:
        return winscope_text(m, k->bytes, DISPLAY_AREA_PROTO_NAME);
    case ACTIVITY:
        return winscope_text(m, k->bytes, ACTIVITY_RECORD_PROTO_NAME);
    case TOKEN:
        return strpool_printf(&m->st->strings, "%" PRIx32,
                              (uint32_t)winscope_number(k->bytes, WINDOW_TOKEN_PROTO_HASH_CODE, 0));
    default:
        return pb_find(identifier_of(k), IDENTIFIER_PROTO_TITLE, &f) ? import_slice(m->im, pb_bytes(&f)) : 0;
    }
}

static strid override_of(struct tree *t, const struct container *k)
{
    static const char *const prefixes[] = {"Starting ", "Waiting For Debugger: "};
    struct machine_ctx *m = t->p->m;
    struct pb_field f;
    if (k->kind == TASK) {
        int32_t id = (int32_t)winscope_number(k->bytes, TASK_PROTO_ID, 0);
        struct slice name = winscope_sub(k->bytes, TASK_PROTO_TASK_NAME);
        return name.len ? strpool_printf(&m->st->strings, "%" PRId32 "(%.*s)", id, (int)(name.len & INT32_MAX),
                                         (const char *)name.p)
                        : strpool_printf(&m->st->strings, "%" PRId32, id);
    }
    if (k->kind != WINDOW || !pb_find(identifier_of(k), IDENTIFIER_PROTO_TITLE, &f))
        return 0;
    struct slice title = pb_bytes(&f);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i]);
        if (title.len >= n && memcmp(title.p, prefixes[i], n) == 0)
            return import_slice(m->im, slice_of(title.p + n, title.len - n));
    }
    return 0;
}

static bool is_visible(const struct container *k)
{
    switch (k->kind) {
    case ACTIVITY:
        return winscope_number(k->bytes, ACTIVITY_RECORD_PROTO_VISIBLE, 0) != 0;
    case WINDOW:
        return winscope_number(k->bytes, WINDOW_STATE_PROTO_IS_VISIBLE, 0) != 0;
    default:
        return winscope_number(k->common, WINDOW_CONTAINER_PROTO_VISIBLE, 0) != 0;
    }
}

static int64_t rect_row(struct tree *t, struct winscope_box box, uint32_t depth, bool visible, double opacity)
{
    return winscope_trace_rect_insert(
        t->p->m->st, &(struct winscope_trace_rect_row){.rect_id = winscope_rect_row(winscope_of(t->p), box),
                                                       .group_id = t->display,
                                                       .depth = depth,
                                                       .is_visible = visible,
                                                       .opacity = opacity,
                                                       .transform_id = t->transform,
                                                       .border_width = NAN,
                                                       .border_color = COL_NULL});
}

static int64_t window_rect(struct tree *t, const struct container *k, bool visible)
{
    struct pb_field f;
    if (k->kind == DISPLAY) {
        struct slice info = winscope_sub(k->bytes, DISPLAY_CONTENT_PROTO_DISPLAY_INFO);
        t->display = (uint32_t)winscope_number(k->bytes, DISPLAY_CONTENT_PROTO_ID, 0);
        t->next_depth = 1;
        struct winscope_box box = {0, 0, (double)winscope_number(info, DISPLAY_INFO_PROTO_LOGICAL_WIDTH, 0),
                                   (double)winscope_number(info, DISPLAY_INFO_PROTO_LOGICAL_HEIGHT, 0)};
        return rect_row(t, box, 0, visible, NAN);
    }
    if (k->kind != WINDOW)
        return COL_NULL;
    struct slice frames = winscope_sub(k->bytes, WINDOW_STATE_PROTO_WINDOW_FRAMES);
    if (!pb_find(frames, WINDOW_FRAMES_PROTO_FRAME, &f) && !pb_find(k->bytes, WINDOW_STATE_PROTO_FRAME, &f))
        return COL_NULL;
    struct slice attributes = winscope_sub(k->bytes, WINDOW_STATE_PROTO_ATTRIBUTES);
    struct pb_field alpha;
    double opacity = pb_find(attributes, WINDOW_LAYOUT_PARAMS_PROTO_ALPHA, &alpha) ? (double)pb_float(&alpha) : 0;
    return rect_row(t, winscope_read_rect(pb_bytes(&f)), t->next_depth++, visible, opacity);
}

static void write_container(struct tree *t, const struct container *k)
{
    argset set = winscope_args(t->p, kinds[k->kind].type, k->bytes, NULL);
    bool visible = is_visible(k);
    windowmanager_windowcontainer_insert(
        t->p->m->st,
        &(struct windowmanager_windowcontainer_row){.snapshot_id = t->snapshot,
                                                    .arg_set_id = set,
                                                    .base64_proto_id = winscope_proto_id(set),
                                                    .title = title_of(t, k),
                                                    .token = (int32_t)token_of(k),
                                                    .parent_token = k->parent,
                                                    .child_index = k->child_index,
                                                    .is_visible = visible,
                                                    .window_rect_id = window_rect(t, k, visible),
                                                    .container_type = import_str(t->p->m->im, kinds[k->kind].name),
                                                    .name_override = override_of(t, k)});
}

void window_manager_parse(struct packet *p, struct slice bytes)
{
    struct slice service = winscope_sub(bytes, WINDOW_MANAGER_TRACE_ENTRY_WINDOW_MANAGER_SERVICE),
                 root = winscope_sub(service, WINDOW_MANAGER_SERVICE_DUMP_PROTO_ROOT_WINDOW_CONTAINER);
    argset set = winscope_args(p, WINSCOPE_WINDOW_MANAGER, bytes, NULL);
    struct tree t = {.p = p, .transform = winscope_transform_row(winscope_of(p), &winscope_identity)};
    t.snapshot = windowmanager_insert(
        p->m->st, &(struct windowmanager_row){
                      .ts = p->ts,
                      .arg_set_id = set,
                      .base64_proto_id = winscope_proto_id(set),
                      .focused_display_id =
                          (uint32_t)winscope_number(service, WINDOW_MANAGER_SERVICE_DUMP_PROTO_FOCUSED_DISPLAY_ID, 0),
                      .has_invalid_elapsed_ts =
                          winscope_number(bytes, WINDOW_MANAGER_TRACE_ENTRY_ELAPSED_REALTIME_NANOS, 0) == 0});
    if (root.p)
        walk(&t, ROOT, root, COL_NULL, COL_NULL, 0);
    if (t.broken)
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_windowmanager_parse_errors, 1);
    for (size_t i = 0; !t.broken && i < t.list.n; i++)
        write_container(&t, &t.list.p[i]);
    vec_free(&t.list);
}
