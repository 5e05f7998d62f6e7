/* Imports the window manager's states: a tree of containers, from the root over displays and tasks to windows. */
#include "importer/winscope/winscope_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { MAX_DEPTH = 64 };

/* Where a kind of container keeps what all containers have, and what it must say to count. */
struct kind {
    uint32_t field; /* of WindowContainerChildProto, 0: none */
    const char *name;
    uint8_t path[4];    /* fields that lead to its WindowContainerProto, 0: the end */
    uint8_t name_in[2]; /* fields that lead to its title; 0: that of the identifier */
    uint8_t token;      /* its message that holds the hash code; 0: the identifier */
};
enum { ROOT, CONTAINER, DISPLAY, AREA, TASK, FRAGMENT, ACTIVITY, TOKEN, WINDOW, KINDS };

static const struct kind kinds[KINDS] = {
    [ROOT] = {.name = "RootWindowContainer", .path = {ROOT_WINDOW_CONTAINER_PROTO_WINDOW_CONTAINER}},
    [CONTAINER] = {WINDOW_CONTAINER_CHILD_PROTO_WINDOW_CONTAINER, "WindowContainer", .path = {0}},
    [DISPLAY] = {WINDOW_CONTAINER_CHILD_PROTO_DISPLAY_CONTENT, "DisplayContent",
                 .path = {DISPLAY_CONTENT_PROTO_ROOT_DISPLAY_AREA, DISPLAY_AREA_PROTO_WINDOW_CONTAINER},
                 .name_in = {DISPLAY_CONTENT_PROTO_DISPLAY_INFO, DISPLAY_INFO_PROTO_NAME}},
    [AREA] = {WINDOW_CONTAINER_CHILD_PROTO_DISPLAY_AREA, "DisplayArea", .path = {DISPLAY_AREA_PROTO_WINDOW_CONTAINER},
              .name_in = {DISPLAY_AREA_PROTO_NAME}},
    [TASK] = {WINDOW_CONTAINER_CHILD_PROTO_TASK, "Task",
              .path = {TASK_PROTO_TASK_FRAGMENT, TASK_FRAGMENT_PROTO_WINDOW_CONTAINER}},
    [FRAGMENT] = {WINDOW_CONTAINER_CHILD_PROTO_TASK_FRAGMENT, "TaskFragment",
                  .path = {TASK_FRAGMENT_PROTO_WINDOW_CONTAINER}},
    [ACTIVITY] = {WINDOW_CONTAINER_CHILD_PROTO_ACTIVITY, "Activity",
                  .path = {ACTIVITY_RECORD_PROTO_WINDOW_TOKEN, WINDOW_TOKEN_PROTO_WINDOW_CONTAINER},
                  .name_in = {ACTIVITY_RECORD_PROTO_NAME}, .token = ACTIVITY_RECORD_PROTO_WINDOW_TOKEN},
    [TOKEN] = {WINDOW_CONTAINER_CHILD_PROTO_WINDOW_TOKEN, "WindowToken", .path = {WINDOW_TOKEN_PROTO_WINDOW_CONTAINER}},
    [WINDOW] = {WINDOW_CONTAINER_CHILD_PROTO_WINDOW, "WindowState", .path = {WINDOW_STATE_PROTO_WINDOW_CONTAINER}},
};

struct container { /* read, until the whole tree is known to be sound */
    uint8_t kind;
    struct slice whole;         /* the WindowContainerChildProto around it; the root: its message */
    struct slice bytes, common; /* its message, and the WindowContainerProto in it */
    struct slice title;         /* not that of a token */
    int64_t token;
    int64_t parent; /* token, COL_NULL: the root */
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
    return !s.p && kind == TASK ? winscope_sub(bytes, TASK_PROTO_WINDOW_CONTAINER) : s; /* older tasks hold it */
}

/* The hash code and the title by which a container is known; false: it lacks one of them. */
static bool identify(struct container *k)
{
    const struct kind *of = &kinds[k->kind];
    struct slice identifier = winscope_sub(k->common, WINDOW_CONTAINER_PROTO_IDENTIFIER), named = k->bytes;
    struct slice window_token = of->token ? winscope_sub(k->bytes, of->token) : k->bytes;
    bool is_token = k->kind == TOKEN || of->token;
    struct pb_field code, title;
    if (!pb_find(is_token ? window_token : identifier,
                 is_token ? WINDOW_TOKEN_PROTO_HASH_CODE : IDENTIFIER_PROTO_HASH_CODE, &code))
        return false;
    k->token = pb_i32(&code);
    if (k->kind == TOKEN)
        return true;
    uint32_t name = of->name_in[0];
    if (of->name_in[1]) {
        named = winscope_sub(named, name);
        name = of->name_in[1];
    }
    if (!pb_find(name ? named : identifier, name ? name : IDENTIFIER_PROTO_TITLE, &title))
        return false;
    k->title = pb_bytes(&title);
    return true;
}

static void walk(struct tree *t, struct container k, unsigned depth);

/* Of a child's message the first member that is known counts. */
static void walk_child(struct tree *t, struct slice whole, int64_t parent, int64_t index, unsigned depth)
{
    struct pb_cursor c = pb_cursor(whole);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        uint8_t kind = CONTAINER;
        while (kind < KINDS && kinds[kind].field != f.id)
            kind++;
        if (kind == KINDS || f.wire != PB_BYTES)
            continue;
        walk(t,
             (struct container){
                 .kind = kind, .whole = whole, .bytes = pb_bytes(&f), .parent = parent, .child_index = index},
             depth);
        return;
    }
    t->broken = true;
}

/* Reads a container and, depth first, those inside it. */
static void walk(struct tree *t, struct container k, unsigned depth)
{
    k.common = common_of(k.kind, k.bytes);
    if (depth > MAX_DEPTH || !identify(&k)) {
        t->broken = true;
        return;
    }
    if (!vec_push(&t->list, k)) {
        t->p->m->im->failed = true;
        return;
    }
    struct pb_cursor c = pb_cursor(k.common);
    struct pb_field f;
    for (int64_t at = 0; pb_next(&c, &f) && !t->broken;)
        if (f.id == WINDOW_CONTAINER_PROTO_CHILDREN)
            walk_child(t, pb_bytes(&f), k.token, at++, depth + 1);
}

static strid title_of(struct tree *t, const struct container *k)
{
    struct machine_ctx *m = t->p->m;
    return k->kind == TOKEN ? strpool_printf(&m->st->strings, "%" PRIx32, (uint32_t)k->token)
                            : import_slice(m->im, k->title);
}

static strid task_name(struct machine_ctx *m, struct slice task)
{
    struct pb_field id, name;
    if (!pb_find(task, TASK_PROTO_ID, &id))
        return 0;
    if (!pb_find(task, TASK_PROTO_TASK_NAME, &name))
        return strpool_printf(&m->st->strings, "%" PRId32, pb_i32(&id));
    struct slice text = pb_bytes(&name);
    return strpool_printf(&m->st->strings, "%" PRId32 "(%.*s)", pb_i32(&id), (int)(text.len & INT32_MAX),
                          text.len ? (const char *)text.p : "");
}

static strid override_of(struct tree *t, const struct container *k)
{
    static const char *const prefixes[] = {"Starting ", "Waiting For Debugger: "};
    struct machine_ctx *m = t->p->m;
    if (k->kind == TASK)
        return task_name(m, k->bytes);
    for (size_t i = 0; k->kind == WINDOW && i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i]);
        if (slice_starts(k->title, prefixes[i]))
            return import_slice(m->im, slice_of(k->title.p + n, k->title.len - n));
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

/* The rectangle of a display (never visible by itself) or of a window. */
static int64_t window_rect(struct tree *t, const struct container *k, bool visible)
{
    if (k->kind == DISPLAY) {
        struct slice info = winscope_sub(k->bytes, DISPLAY_CONTENT_PROTO_DISPLAY_INFO);
        t->display = (uint32_t)winscope_number(k->bytes, DISPLAY_CONTENT_PROTO_ID, 0);
        t->next_depth = 1;
        struct winscope_box box = {0, 0, (double)(int32_t)winscope_number(info, DISPLAY_INFO_PROTO_LOGICAL_WIDTH, 0),
                                   (double)(int32_t)winscope_number(info, DISPLAY_INFO_PROTO_LOGICAL_HEIGHT, 0)};
        return rect_row(t, box, 0, false, NAN);
    }
    if (k->kind != WINDOW)
        return COL_NULL;
    struct slice frame =
        winscope_sub(winscope_sub(k->bytes, WINDOW_STATE_PROTO_WINDOW_FRAMES), WINDOW_FRAMES_PROTO_FRAME);
    struct slice attributes = winscope_sub(k->bytes, WINDOW_STATE_PROTO_ATTRIBUTES);
    struct pb_field alpha;
    double opacity = pb_find(attributes, WINDOW_LAYOUT_PARAMS_PROTO_ALPHA, &alpha) ? (double)pb_float(&alpha) : 0;
    return rect_row(t, winscope_read_rect(frame), t->next_depth++, visible, opacity);
}

static void write_container(struct tree *t, const struct container *k)
{
    argset set =
        winscope_args(t->p, k->kind == ROOT ? WINSCOPE_ROOT_CONTAINER : WINSCOPE_CHILD_CONTAINER, k->whole, NULL);
    bool visible = is_visible(k);
    windowmanager_windowcontainer_insert(
        t->p->m->st,
        &(struct windowmanager_windowcontainer_row){.snapshot_id = t->snapshot,
                                                    .arg_set_id = set,
                                                    .base64_proto_id = winscope_proto_id(set),
                                                    .title = title_of(t, k),
                                                    .token = (int32_t)k->token,
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
    walk(&t,
         (struct container){.kind = ROOT, .whole = root, .bytes = root, .parent = COL_NULL, .child_index = COL_NULL},
         0);
    if (t.broken)
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_windowmanager_parse_errors, 1);
    for (size_t i = 0; !t.broken && i < t.list.n; i++)
        write_container(&t, &t.list.p[i]);
    vec_free(&t.list);
}
