/* Imports snapshots of SurfaceFlinger: displays, layers, and the rectangles they take on the screen. */
#include "importer/winscope/layers.h"

#include <math.h>

enum {
    NOT_TOUCHABLE = 0x8, /* of an input window's config */
    WALLPAPER = 0x40,
    SPY = 0x4000,
    FAR = 50000,  /* bounds that reach so far stand for "none" */
    MANY = 10,    /* so do those of ten times a display's size */
    NO_STACK = -1 /* layer_stack of a display that is off, as 32 bits, if it has one at all */
};
enum { TYPE_SCALE = 4, TYPE_FLIP_H = 0x100, TYPE_FLIP_V = 0x200, TYPE_ROTATE = 0x400, TYPE_INVALID = 0x8000 };

static double real_of(struct slice bytes, uint32_t field)
{
    struct pb_field f;
    return pb_find(bytes, field, &f) ? (double)pb_float(&f) : 0;
}

static struct edges read_edges(struct slice bytes)
{
    return (struct edges){real_of(bytes, FLOAT_RECT_PROTO_LEFT), real_of(bytes, FLOAT_RECT_PROTO_TOP),
                          real_of(bytes, FLOAT_RECT_PROTO_RIGHT), real_of(bytes, FLOAT_RECT_PROTO_BOTTOM)};
}

struct winscope_matrix winscope_read_transform(struct slice bytes, struct slice position)
{
    uint32_t type = (uint32_t)winscope_number(bytes, TRANSFORM_PROTO_TYPE, 0);
    struct winscope_matrix t = winscope_identity;
    bool flip_h = type & TYPE_FLIP_H, flip_v = type & TYPE_FLIP_V, rotate = type & TYPE_ROTATE;
    if (type & (TYPE_SCALE | TYPE_INVALID))
        t = (struct winscope_matrix){.dsdx = real_of(bytes, TRANSFORM_PROTO_DSDX),
                                     .dtdx = real_of(bytes, TRANSFORM_PROTO_DSDY),
                                     .dtdy = real_of(bytes, TRANSFORM_PROTO_DTDX),
                                     .dsdy = real_of(bytes, TRANSFORM_PROTO_DTDY)};
    else if (flip_h && flip_v && rotate)
        t = (struct winscope_matrix){.dtdx = -1, .dtdy = 1};
    else if (flip_h && flip_v)
        t = (struct winscope_matrix){.dsdx = -1, .dsdy = -1};
    else if (rotate)
        t = (struct winscope_matrix){.dtdx = 1, .dtdy = -1};
    t.tx = real_of(position, POSITION_PROTO_X);
    t.ty = real_of(position, POSITION_PROTO_Y);
    return t;
}

/* --- displays ----------------------------------------------------------------------------------------------------- */

static void add_display(struct snapshot *s, struct slice bytes, uint32_t index)
{
    struct winscope_machine *w = winscope_of(s->p);
    struct slice size = winscope_sub(bytes, DISPLAY_PROTO_SIZE),
                 transform = winscope_sub(bytes, DISPLAY_PROTO_TRANSFORM);
    int64_t stack = winscope_number(bytes, DISPLAY_PROTO_LAYER_STACK, NO_STACK);
    struct display d = {.stack = stack == NO_STACK ? 0 : (uint32_t)stack,
                        .on = (uint32_t)stack != (uint32_t)NO_STACK,
                        .rect = winscope_read_rect(winscope_sub(bytes, DISPLAY_PROTO_LAYER_STACK_SPACE_RECT)),
                        .size = {0, 0, (double)(int32_t)winscope_number(size, SIZE_PROTO_W, 0),
                                 (double)(int32_t)winscope_number(size, SIZE_PROTO_H, 0)},
                        .transform = winscope_read_transform(transform, slice_of(NULL, 0))};
    if ((uint32_t)winscope_number(transform, TRANSFORM_PROTO_TYPE, 0) & TYPE_ROTATE)
        d.size = (struct winscope_box){0, 0, d.size.h, d.size.w};
    /* A turned display is moved back to where its corner is: by its width and height on the side that now counts down.
     */
    d.transform.tx = d.transform.dsdx + d.transform.dtdx < 0 ? d.transform.dsdx < 0 ? d.size.w : d.size.h : 0;
    d.transform.ty = d.transform.dsdy + d.transform.dtdy < 0 ? d.transform.dsdy < 0 ? d.size.h : d.size.w : 0;
    if (d.rect.w <= 0 || d.rect.h <= 0)
        d.rect = d.size;
    if (s->displays.n >= MAX_DISPLAYS) {
        s->cut = true;
        return;
    }
    if (!vec_push(&s->displays, d)) {
        s->p->m->im->failed = true;
        return;
    }
    uint32_t rect = winscope_trace_rect_insert(
        s->p->m->st, &(struct winscope_trace_rect_row){.rect_id = winscope_rect_row(w, d.rect),
                                                       .group_id = d.stack,
                                                       .depth = index,
                                                       .opacity = NAN,
                                                       .transform_id = winscope_transform_row(w, &winscope_identity),
                                                       .border_width = NAN,
                                                       .border_color = COL_NULL});
    surfaceflinger_display_insert(
        s->p->m->st,
        &(struct surfaceflinger_display_row){.snapshot_id = s->row,
                                             .is_on = d.on,
                                             .is_virtual = winscope_number(bytes, DISPLAY_PROTO_IS_VIRTUAL, 0) != 0,
                                             .trace_rect_id = rect,
                                             .display_id = winscope_number(bytes, DISPLAY_PROTO_ID, 0),
                                             .display_name = winscope_text(s->p->m, bytes, DISPLAY_PROTO_NAME)});
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

static int64_t signed_field(struct slice bytes, uint32_t field)
{
    struct pb_field f;
    return pb_find(bytes, field, &f) ? (int64_t)pb_i32(&f) : COL_NULL;
}

/* The four radii of CornerRadiiProto; false when all are 0. */
static bool read_radii(struct slice bytes, double *radius)
{
    static const uint32_t fields[] = {CORNER_RADII_PROTO_TL, CORNER_RADII_PROTO_TR, CORNER_RADII_PROTO_BL,
                                      CORNER_RADII_PROTO_BR};
    bool any = false;
    for (int i = 0; i < 4; i++)
        any |= (radius[i] = real_of(bytes, fields[i])) > 0;
    return any;
}

static void read_corners(struct layer *k)
{
    if (read_radii(winscope_sub(k->bytes, LAYER_PROTO_EFFECTIVE_RADII), k->radius) ||
        read_radii(winscope_sub(k->bytes, LAYER_PROTO_CORNER_RADII), k->radius))
        return;
    struct pb_field f;
    bool one = pb_find(k->bytes, LAYER_PROTO_CORNER_RADIUS, &f); /* for all four */
    for (int i = 0; i < 4; i++)
        k->radius[i] = one ? (double)pb_float(&f) : NAN;
}

static void add_layer(struct snapshot *s, struct slice bytes)
{
    struct pb_field f;
    struct slice color = winscope_sub(bytes, LAYER_PROTO_COLOR);
    struct layer k = {.bytes = bytes,
                      .id = signed_field(bytes, LAYER_PROTO_ID),
                      .parent = signed_field(bytes, LAYER_PROTO_PARENT),
                      .z = (int32_t)winscope_number(bytes, LAYER_PROTO_Z, 0),
                      .relative = signed_field(bytes, LAYER_PROTO_Z_ORDER_RELATIVE_OF),
                      .stack = (uint32_t)winscope_number(bytes, LAYER_PROTO_LAYER_STACK, 0),
                      .flags = (uint32_t)winscope_number(bytes, LAYER_PROTO_FLAGS, 0),
                      .has_color = color.p != NULL,
                      .red = real_of(color, COLOR_PROTO_R),
                      .green = real_of(color, COLOR_PROTO_G),
                      .blue = real_of(color, COLOR_PROTO_B),
                      .alpha = real_of(color, COLOR_PROTO_A),
                      .bounds = read_edges(winscope_sub(bytes, LAYER_PROTO_BOUNDS)),
                      .has_screen_bounds = pb_find(bytes, LAYER_PROTO_SCREEN_BOUNDS, &f)};
    k.screen = read_edges(winscope_sub(bytes, LAYER_PROTO_SCREEN_BOUNDS));
    read_corners(&k);
    if (s->layers.n >= MAX_LAYERS) {
        s->cut = true;
        return;
    }
    if (!vec_push(&s->layers, k) || (k.id != COL_NULL && !u64map_get(&s->by_id, (uint64_t)k.id) &&
                                     !u64map_set(&s->by_id, (uint64_t)k.id, s->layers.n - 1)))
        s->p->m->im->failed = true;
}

/* --- rectangles --------------------------------------------------------------------------------------------------- */

static bool reaches(const struct edges *e, double w, double h)
{
    const double near = 0.01; /* so far may floats be off */
    return fabs(e->left + w) < near && fabs(e->top + h) < near && fabs(e->right - w) < near &&
           fabs(e->bottom - h) < near;
}

/* Bounds that stand for "as large as you like". */
static bool no_bounds(const struct snapshot *s, const struct edges *e)
{
    double max_w = 0, max_h = 0;
    for (size_t i = 0; i < s->displays.n; i++) {
        double w = s->displays.p[i].size.w * MANY, h = s->displays.p[i].size.h * MANY;
        if (reaches(e, w, h) || reaches(e, h, w))
            return true;
        max_w = w > max_w ? w : max_w;
        max_h = h > max_h ? h : max_h;
    }
    return reaches(e, max_w, max_h) || reaches(e, max_h, max_w) || reaches(e, FAR, FAR);
}

static int64_t bounds_rect(struct snapshot *s, const struct layer *k, uint32_t depth)
{
    struct winscope_machine *w = winscope_of(s->p);
    struct winscope_matrix t = winscope_read_transform(winscope_sub(k->bytes, LAYER_PROTO_TRANSFORM),
                                                       winscope_sub(k->bytes, LAYER_PROTO_POSITION));
    struct slice border = winscope_sub(k->bytes, LAYER_PROTO_BORDER_SETTINGS);
    double stroke = real_of(border, BORDER_SETTINGS_STROKE_WIDTH);
    struct winscope_box box = {k->bounds.left, k->bounds.top, k->bounds.right - k->bounds.left,
                               k->bounds.bottom - k->bounds.top};
    return winscope_trace_rect_insert(
        s->p->m->st,
        &(struct winscope_trace_rect_row){
            .rect_id = winscope_rect_row(w, box),
            .group_id = k->stack,
            .depth = depth,
            .is_visible = k->visible,
            .opacity = k->has_color ? k->alpha
                       : k->visible ? 0
                                    : NAN,
            .transform_id = winscope_transform_row(w, &t),
            .border_width = stroke > 0 ? stroke : NAN,
            .border_color =
                stroke > 0 ? (int64_t)(uint32_t)winscope_number(border, BORDER_SETTINGS_COLOR, 0) : COL_NULL});
}

static void apply(const struct winscope_matrix *t, double x, double y, double *rx, double *ry)
{
    *rx = t->dsdx * x + t->dtdx * y + t->tx;
    *ry = t->dtdy * x + t->dsdy * y + t->ty;
}

static struct winscope_matrix inverse(const struct winscope_matrix *t)
{
    double det = t->dsdx * t->dsdy - t->dtdx * t->dtdy;
    if (det == 0)
        return winscope_identity;
    struct winscope_matrix i = {
        .dsdx = t->dsdy / det, .dtdx = -t->dtdx / det, .dtdy = -t->dtdy / det, .dsdy = t->dsdx / det};
    i.tx = -(i.dsdx * t->tx + i.dtdx * t->ty);
    i.ty = -(i.dtdy * t->tx + i.dsdy * t->ty);
    return i;
}

/* The rectangle around a moved one. */
static struct winscope_box moved(const struct winscope_matrix *t, struct winscope_box b)
{
    double x0, y0, x1, y1;
    apply(t, b.x, b.y, &x0, &y0);
    apply(t, b.x + b.w, b.y + b.h, &x1, &y1);
    return (struct winscope_box){fmin(x0, x1), fmin(y0, y1), fabs(x1 - x0), fabs(y1 - y0)};
}

/* Of the displays that show a stack, the last one counts. */
static const struct display *display_of(const struct snapshot *s, uint32_t stack)
{
    for (size_t i = s->displays.n; i-- > 0;)
        if (s->displays.p[i].stack == stack)
            return &s->displays.p[i];
    return NULL;
}

static struct winscope_box cropped(struct winscope_box b, const struct winscope_box *to)
{
    double left = fmax(b.x, to->x), top = fmax(b.y, to->y), right = fmin(b.x + b.w, to->x + to->w),
           bottom = fmin(b.y + b.h, to->y + to->h);
    return (struct winscope_box){left, top, fmax(right - left, 0), fmax(bottom - top, 0)};
}

/* Where an input window goes: from its display, cropped to the display if `crop`, into the layer. */
struct placing {
    struct winscope_matrix from_display, to_layer;
    const struct winscope_box *crop; /* NULL: as it is */
};

static struct winscope_box placed(const struct placing *p, struct winscope_box b)
{
    b = moved(&p->from_display, b);
    return moved(&p->to_layer, p->crop ? cropped(b, p->crop) : b);
}

static void fill_regions(struct snapshot *s, uint32_t rect, struct slice window, const struct placing *place)
{
    struct winscope_machine *w = winscope_of(s->p);
    struct pb_field f;
    if ((uint32_t)winscope_number(window, INPUT_WINDOW_INFO_PROTO_INPUT_CONFIG, 0) & NOT_TOUCHABLE) {
        winscope_fill_region_insert(
            s->p->m->st, &(struct winscope_fill_region_row){.trace_rect_id = rect,
                                                            .rect_id = winscope_rect_row(w, (struct winscope_box){0})});
        return;
    }
    struct pb_cursor c = pb_cursor(winscope_sub(window, INPUT_WINDOW_INFO_PROTO_TOUCHABLE_REGION));
    while (pb_next(&c, &f))
        if (f.id == REGION_PROTO_RECT) {
            struct winscope_box box = placed(place, winscope_read_rect(pb_bytes(&f)));
            winscope_fill_region_insert(s->p->m->st, &(struct winscope_fill_region_row){
                                                         .trace_rect_id = rect, .rect_id = winscope_rect_row(w, box)});
        }
}

static int64_t input_rect(struct snapshot *s, const struct layer *k, struct slice window, uint32_t depth)
{
    struct winscope_machine *w = winscope_of(s->p);
    uint32_t config = (uint32_t)winscope_number(window, INPUT_WINDOW_INFO_PROTO_INPUT_CONFIG, 0);
    struct winscope_matrix own = winscope_read_transform(winscope_sub(k->bytes, LAYER_PROTO_TRANSFORM),
                                                         winscope_sub(k->bytes, LAYER_PROTO_POSITION));
    const struct display *d = display_of(s, k->stack);
    struct placing place = {.from_display = d ? d->transform : winscope_identity, .to_layer = inverse(&own)};
    struct winscope_box frame = winscope_read_rect(winscope_sub(window, INPUT_WINDOW_INFO_PROTO_FRAME)),
                        shown = moved(&place.from_display, frame);
    struct edges e = {shown.x, shown.y, shown.x + shown.w, shown.y + shown.h};
    if (d && (config & WALLPAPER || edges_empty(&e) || no_bounds(s, &e)))
        place.crop = &d->rect;
    struct pb_field f;
    bool visible = pb_find(window, INPUT_WINDOW_INFO_PROTO_VISIBLE, &f) ? pb_bool(&f) : k->visible;
    uint32_t rect = winscope_trace_rect_insert(
        s->p->m->st, &(struct winscope_trace_rect_row){.rect_id = winscope_rect_row(w, placed(&place, frame)),
                                                       .group_id = k->stack,
                                                       .depth = depth,
                                                       .is_spy = config & SPY ? 1 : 0,
                                                       .is_visible = visible,
                                                       .opacity = NAN,
                                                       .transform_id = winscope_transform_row(w, &own),
                                                       .border_width = NAN,
                                                       .border_color = COL_NULL});
    fill_regions(s, rect, window, &place);
    return rect;
}

static void write_layer(struct snapshot *s, const struct layer *k, int64_t layer_rect, int64_t input)
{
    struct arg_list list = {0};
    args_values(&s->p->m->st->args, k->extra, &list);
    struct winscope_extra extra = winscope_keep_args(s->p, &list);
    argset set = winscope_args(s->p, WINSCOPE_LAYER, k->bytes, &extra);
    arg_list_free(&list);
    bool missing = k->relative != COL_NULL && k->relative > 0 && !layers_find(s, k->relative);
    surfaceflinger_layer_insert(s->p->m->st,
                                &(struct surfaceflinger_layer_row){
                                    .snapshot_id = s->row,
                                    .arg_set_id = set,
                                    .base64_proto_id = winscope_proto_id(set),
                                    .layer_id = k->id,
                                    .layer_name = winscope_text(s->p->m, k->bytes, LAYER_PROTO_NAME),
                                    .is_visible = k->visible,
                                    .parent = k->parent,
                                    .corner_radius_tl = k->radius[0],
                                    .corner_radius_tr = k->radius[1],
                                    .corner_radius_bl = k->radius[2],
                                    .corner_radius_br = k->radius[3],
                                    .hwc_composition_type = signed_field(k->bytes, LAYER_PROTO_HWC_COMPOSITION_TYPE),
                                    .is_hidden_by_policy = k->flags & HIDDEN_FLAG || k->id == OFFSCREEN_ROOT,
                                    .z_order_relative_of = k->relative,
                                    .is_missing_z_parent = missing,
                                    .layer_rect_id = layer_rect,
                                    .input_rect_id = input});
}

/* The next depth of a layer stack. */
static uint32_t next_depth(struct snapshot *s, struct u64map *depths, uint32_t stack)
{
    uint64_t *depth = u64map_put(depths, stack, NULL);
    if (!depth) {
        s->p->m->im->failed = true;
        return 0;
    }
    return (uint32_t)++ * depth;
}

static void write_layers(struct snapshot *s)
{
    struct u64map bounds_depth = {0}, input_depth = {0};
    size_t n = s->layers.n;
    int64_t *rects = mem_alloc((2 * n + 1) * sizeof *rects); /* of bounds, of input */
    if (!rects) {
        s->p->m->im->failed = true;
        return;
    }
    for (size_t i = 0; i < 2 * n; i++)
        rects[i] = COL_NULL;
    for (size_t i = 0; i < s->order.n; i++) {
        uint32_t at = s->order.p[i];
        const struct layer *k = &s->layers.p[at];
        struct pb_field window;
        if (k->has_screen_bounds && (k->visible || !no_bounds(s, &k->screen)))
            rects[at] = bounds_rect(s, k, next_depth(s, &bounds_depth, k->stack));
        if (pb_find(k->bytes, LAYER_PROTO_INPUT_WINDOW_INFO, &window))
            rects[n + at] = input_rect(s, k, pb_bytes(&window), next_depth(s, &input_depth, k->stack));
    }
    for (size_t i = 0; i < n; i++)
        write_layer(s, &s->layers.p[i], rects[i], rects[n + i]);
    mem_free(rects);
    u64map_free(&bounds_depth);
    u64map_free(&input_depth);
}

void layers_snapshot_parse(struct packet *p)
{
    argset set = winscope_args(p, WINSCOPE_LAYERS_SNAPSHOT, p->field, NULL);
    struct snapshot s = {
        .p = p, .looks_left = MAX_LOOKS, .covers_left = SOME_COVERS + p->field.len / BYTES_FOR_A_COVER};
    s.excludes_composition = winscope_number(p->field, LAYERS_SNAPSHOT_PROTO_EXCLUDES_COMPOSITION_STATE, 1) != 0;
    s.row = surfaceflinger_layers_snapshot_insert(
        p->m->st,
        &(struct surfaceflinger_layers_snapshot_row){
            .ts = p->ts,
            .arg_set_id = set,
            .base64_proto_id = winscope_proto_id(set),
            .sequence_id = p->gen->seq->id,
            .has_invalid_elapsed_ts = winscope_number(p->field, LAYERS_SNAPSHOT_PROTO_ELAPSED_REALTIME_NANOS, 0) == 0});
    winscope_transform_row(winscope_of(p), &winscope_identity);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    for (uint32_t i = 0; pb_next(&c, &f);)
        if (f.id == LAYERS_SNAPSHOT_PROTO_DISPLAYS)
            add_display(&s, pb_bytes(&f), i++);
    struct pb_cursor layers = pb_cursor(winscope_sub(p->field, LAYERS_SNAPSHOT_PROTO_LAYERS));
    while (pb_next(&layers, &f))
        if (f.id == LAYERS_PROTO_LAYERS)
            add_layer(&s, pb_bytes(&f));
    layers_resolve(&s);
    if (c.bad || layers.bad || s.cut)
        stats_add(&p->m->st->stats, p->m->id, STAT_winscope_sf_layers_parse_errors, 1);
    write_layers(&s);
    u64map_free(&s.by_id);
    vec_free(&s.layers);
    vec_free(&s.displays);
    vec_free(&s.order);
}
