/* Imports ViewCapture: the views of an application's window at a moment, as a tree. */
#include "importer/winscope/winscope_internal.h"

#include <math.h>

/* A field that holds the number of an interned string, and the field of InternedData that has it. */
struct reference {
    uint8_t field, interned;
};
static const struct reference package = {VIEW_CAPTURE_PACKAGE_NAME_IID, INTERNED_DATA_VIEWCAPTURE_PACKAGE_NAME},
                              window = {VIEW_CAPTURE_WINDOW_NAME_IID, INTERNED_DATA_VIEWCAPTURE_WINDOW_NAME},
                              view_id = {VIEW_CAPTURE_VIEW_VIEW_ID_IID, INTERNED_DATA_VIEWCAPTURE_VIEW_ID},
                              class_name = {VIEW_CAPTURE_VIEW_CLASS_NAME_IID, INTERNED_DATA_VIEWCAPTURE_CLASS_NAME},
                              description = {VIEW_CAPTURE_VIEW_CONTENT_DESCRIPTION_IID,
                                             INTERNED_DATA_VIEWCAPTURE_CONTENT_DESCRIPTION},
                              text = {VIEW_CAPTURE_VIEW_TEXT_IID, INTERNED_DATA_VIEWCAPTURE_TEXT};

struct view { /* what its children need to know */
    struct winscope_box rect;
    double scroll_x, scroll_y, scale_x, scale_y;
    bool shown; /* it and everything around it */
    bool empty; /* it has no size of its own */
    unsigned depth;
};

struct capture {
    struct packet *p;
    struct u64map by_id; /* id of a view -> index */
    VEC(struct view)
    views;
    uint32_t snapshot;
    uint32_t transform;
};

/* The string that a message refers to, 0 when it refers to none, or (counted) to one that is not there. */
static strid referred(struct packet *p, struct slice message, const struct reference *r, const char *flat_key,
                      argset owner)
{
    struct pb_field f;
    if (!pb_find(message, r->field, &f))
        return 0;
    strid s = winscope_interned(p->gen, r->interned, pb_u64(&f));
    if (!s) {
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_viewcapture_missing_interned_string_parse_errors, 1);
        return 0;
    }
    if (flat_key)
        viewcapture_interned_data_insert(
            p->m->st, &(struct viewcapture_interned_data_row){.base64_proto_id = winscope_proto_id(owner),
                                                              .flat_key = import_str(p->m->im, flat_key),
                                                              .iid = pb_i64(&f),
                                                              .deinterned_value = s});
    return s;
}

static double real_of(struct slice message, uint32_t field, double absent)
{
    struct pb_field f;
    return pb_find(message, field, &f) ? (double)pb_float(&f) : absent;
}

static double int_of(struct slice message, uint32_t field)
{
    return (double)(int32_t)winscope_number(message, field, 0);
}

/* Where a view is and whether it can be seen, given the view around it (NULL: none). */
static struct view place_view(struct slice bytes, const struct view *parent)
{
    static const struct view outside = {.scale_x = 1, .scale_y = 1, .shown = true};
    bool root = !parent;
    if (root)
        parent = &outside;
    double scale_x = real_of(bytes, VIEW_CAPTURE_VIEW_SCALE_X, 0),
           scale_y = real_of(bytes, VIEW_CAPTURE_VIEW_SCALE_Y, 0);
    double width = int_of(bytes, VIEW_CAPTURE_VIEW_WIDTH), height = int_of(bytes, VIEW_CAPTURE_VIEW_HEIGHT);
    struct view v = {.scroll_x = int_of(bytes, VIEW_CAPTURE_VIEW_SCROLL_X),
                     .scroll_y = int_of(bytes, VIEW_CAPTURE_VIEW_SCROLL_Y),
                     .scale_x = parent->scale_x * scale_x,
                     .scale_y = parent->scale_y * scale_y,
                     .depth = root ? 0 : parent->depth + 1,
                     .shown = parent->shown && winscope_number(bytes, VIEW_CAPTURE_VIEW_VISIBILITY, 0) == 0};
    v.empty = width <= 0 || height <= 0;
    double x = int_of(bytes, VIEW_CAPTURE_VIEW_LEFT) + real_of(bytes, VIEW_CAPTURE_VIEW_TRANSLATION_X, 0),
           y = int_of(bytes, VIEW_CAPTURE_VIEW_TOP) + real_of(bytes, VIEW_CAPTURE_VIEW_TRANSLATION_Y, 0);
    v.rect.x = parent->rect.x - parent->scroll_x + x * parent->scale_x + width * (parent->scale_x - v.scale_x) / 2;
    v.rect.y = parent->rect.y - parent->scroll_y + y * parent->scale_y + height * (parent->scale_y - v.scale_y) / 2;
    v.rect.w = width * v.scale_x;
    v.rect.h = height * v.scale_y;
    return v;
}

static void add_view(struct capture *k, struct slice bytes)
{
    enum { DEPTH_STEP = 4 };
    struct packet *p = k->p;
    struct winscope_machine *w = winscope_of(p);
    struct storage *st = p->m->st;
    int64_t id = (int32_t)winscope_number(bytes, VIEW_CAPTURE_VIEW_ID, 0),
            parent_id = (int32_t)winscope_number(bytes, VIEW_CAPTURE_VIEW_PARENT_ID, 0);
    const uint64_t *parent = u64map_get(&k->by_id, (uint64_t)parent_id);
    struct view v = place_view(bytes, parent && parent_id != id ? &k->views.p[*parent] : NULL);
    if (!vec_push(&k->views, v) || !u64map_set(&k->by_id, (uint64_t)id, k->views.n - 1)) {
        p->m->im->failed = true;
        return;
    }
    bool visible = v.shown && !v.empty;
    uint32_t rect = winscope_trace_rect_insert(
        st, &(struct winscope_trace_rect_row){.rect_id = winscope_rect_row(w, v.rect),
                                              .group_id = 0,
                                              .depth = v.depth * DEPTH_STEP,
                                              .is_visible = visible,
                                              .opacity = real_of(bytes, VIEW_CAPTURE_VIEW_ALPHA, 0),
                                              .transform_id = k->transform,
                                              .border_width = NAN,
                                              .border_color = COL_NULL});
    argset set = winscope_args(p, WINSCOPE_VIEW, bytes, NULL);
    viewcapture_view_insert(
        st, &(struct viewcapture_view_row){.snapshot_id = k->snapshot,
                                           .arg_set_id = set,
                                           .base64_proto_id = winscope_proto_id(set),
                                           .node_id = (uint32_t)id,
                                           .hashcode = (uint32_t)winscope_number(bytes, VIEW_CAPTURE_VIEW_HASHCODE, 0),
                                           .is_visible = visible,
                                           .parent_id = (uint32_t)parent_id,
                                           .view_id = referred(p, bytes, &view_id, "view_id_iid", set),
                                           .class_name = referred(p, bytes, &class_name, "class_name_iid", set),
                                           .trace_rect_id = rect});
    referred(p, bytes, &description, "content_description_iid", set);
    referred(p, bytes, &text, "text_iid", set);
}

void view_capture_parse(struct packet *p, struct slice bytes)
{
    argset set = winscope_args(p, WINSCOPE_VIEW_CAPTURE, bytes, NULL);
    struct capture k = {.p = p, .transform = winscope_transform_row(winscope_of(p), &winscope_identity)};
    k.snapshot = viewcapture_insert(
        p->m->st, &(struct viewcapture_row){.ts = p->ts,
                                            .arg_set_id = set,
                                            .base64_proto_id = winscope_proto_id(set),
                                            .package_name = referred(p, bytes, &package, "package_name_iid", set),
                                            .window_name = referred(p, bytes, &window, "window_name_iid", set)});
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == VIEW_CAPTURE_VIEWS)
            add_view(&k, pb_bytes(&f));
    if (c.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_viewcapture_parse_errors, 1);
    u64map_free(&k.by_id);
    vec_free(&k.views);
}
