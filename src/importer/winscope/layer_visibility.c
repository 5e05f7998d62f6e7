/* Which layers of a snapshot can be seen, and why the others cannot. */
#include "importer/winscope/layers.h"

#include "base/bisect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_DEPTH = 512, MAX_REASONS = 12 };
#define TOLERANCE 0.01 /* pixels by which a layer may stick out and still be covered */

struct layer *layers_find(const struct snapshot *s, int64_t id)
{
    const uint64_t *at = id == COL_NULL ? NULL : u64map_get(&s->by_id, (uint64_t)id);
    return at ? &s->layers.p[*at] : NULL;
}

/* --- the drawing order -------------------------------------------------------------------------------------------- */

struct child {
    int64_t parent; /* drawn relative to; COL_NULL: a root */
    int64_t z, id;
    uint32_t index;
};

static int by_parent_and_z(const void *a, const void *b)
{
    const struct child *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->z != y->z)
        return x->z < y->z ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static size_t first_child(const struct child *c, size_t n, int64_t parent)
{
    size_t at = n;
    BISECT(at, mid, c[mid].parent < parent);
    return at;
}

/* Those below a layer, the layer, those above. */
static void draw(struct snapshot *s, const struct child *c, size_t n, uint32_t index, unsigned depth)
{
    struct layer *k = &s->layers.p[index];
    if (k->placed || depth > MAX_DEPTH)
        return;
    k->placed = true;
    size_t i =
        layers_find(s, k->id) == k ? first_child(c, n, k->id) : n; /* of several with one id the first has them */
    for (; i < n && c[i].parent == k->id && c[i].z < 0; i++)
        draw(s, c, n, c[i].index, depth + 1);
    if (!vec_push(&s->order, index))
        s->p->m->im->failed = true;
    for (; i < n && c[i].parent == k->id; i++)
        draw(s, c, n, c[i].index, depth + 1);
}

static void find_order(struct snapshot *s)
{
    size_t n = s->layers.n;
    struct child *c = mem_alloc((n ? n : 1) * sizeof *c);
    if (!c) {
        s->p->m->im->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct layer *k = &s->layers.p[i];
        int64_t above = k->relative != COL_NULL && k->relative > 0 ? k->relative : k->parent;
        c[i] = (struct child){layers_find(s, above) ? above : COL_NULL, k->z, k->id, i};
    }
    qsort(c, n, sizeof *c, by_parent_and_z);
    for (size_t i = 0; i < n && c[i].parent == COL_NULL; i++)
        draw(s, c, n, c[i].index, 0);
    for (uint32_t i = 0; i < n; i++) /* circles */
        draw(s, c, n, i, 0);
    mem_free(c);
}

/* --- what can be seen --------------------------------------------------------------------------------------------- */

static void find_hidden(struct snapshot *s)
{
    for (size_t i = 0; i < s->layers.n; i++) {
        struct layer *k = &s->layers.p[i];
        k->hidden_by = COL_NULL;
        k->hidden = k->flags & HIDDEN_FLAG || k->id == OFFSCREEN_ROOT;
        const struct layer *up = layers_find(s, k->parent);
        for (unsigned depth = 0; up && !k->hidden && k->hidden_by == COL_NULL && depth < MAX_DEPTH; depth++) {
            if (up->flags & HIDDEN_FLAG || up->id == OFFSCREEN_ROOT)
                k->hidden_by = up->id;
            up = layers_find(s, up->parent);
        }
    }
}

static bool has_buffer(const struct layer *k)
{
    struct slice buffer = winscope_sub(k->bytes, LAYER_PROTO_ACTIVE_BUFFER);
    return winscope_number(buffer, ACTIVE_BUFFER_PROTO_WIDTH, 0) > 0 ||
           winscope_number(buffer, ACTIVE_BUFFER_PROTO_HEIGHT, 0) > 0 ||
           winscope_number(buffer, ACTIVE_BUFFER_PROTO_STRIDE, 0) > 0 ||
           (int32_t)winscope_number(buffer, ACTIVE_BUFFER_PROTO_FORMAT, 0) > 0;
}

static bool has_fill(const struct layer *k)
{
    return k->has_color && k->alpha > 0 && k->red >= 0 && k->green >= 0 && k->blue >= 0;
}

static bool has_effects(const struct layer *k)
{
    struct pb_field f;
    bool shadow = pb_find(k->bytes, LAYER_PROTO_SHADOW_RADIUS, &f) && pb_float(&f) > 0;
    return shadow || has_fill(k);
}

/* Whether the composer told of a region that can be seen. */
static bool has_visible_region(const struct layer *k)
{
    struct pb_cursor c = pb_cursor(winscope_sub(k->bytes, LAYER_PROTO_VISIBLE_REGION));
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == REGION_PROTO_RECT) {
            struct winscope_box box = winscope_read_rect(pb_bytes(&f));
            if (box.w > 0 && box.h > 0)
                return true;
        }
    return false;
}

static bool could_be_seen(const struct snapshot *s, const struct layer *k)
{
    if (k->hidden || k->hidden_by != COL_NULL || k->alpha <= 0 || (!has_buffer(k) && !has_effects(k)))
        return false;
    return has_visible_region(k) || (s->excludes_composition && !edges_empty(&k->bounds));
}

/* The part of a layer's bounds on the screen that lies on its display. */
static struct edges on_display(const struct snapshot *s, const struct layer *k)
{
    struct edges e = k->screen;
    for (size_t i = 0; i < s->displays.n; i++) {
        const struct display *d = &s->displays.p[i];
        if (d->stack != k->stack || d->rect.w <= 0 || d->rect.h <= 0)
            continue;
        e.left = e.left > d->rect.x ? e.left : d->rect.x;
        e.top = e.top > d->rect.y ? e.top : d->rect.y;
        e.right = e.right < d->rect.x + d->rect.w ? e.right : d->rect.x + d->rect.w;
        e.bottom = e.bottom < d->rect.y + d->rect.h ? e.bottom : d->rect.y + d->rect.h;
        break;
    }
    return e;
}

/* Whether a corner of the inner layer lies outside of a round corner of the outer one. */
static bool cut_off(double inner_x, double inner_y, double inner_radius, double x, double y, double radius)
{
    if (!(radius > 0) || inner_radius >= radius) /* NAN is as 0 */
        return false;
    double dx = radius - inner_x + x, dy = radius - inner_y + y; /* from the corner, towards the middle */
    return dx > 0 && dy > 0 && dx * dx + dy * dy > (radius + TOLERANCE) * (radius + TOLERANCE);
}

static bool inside(const struct edges *in, const double *in_radius, const struct edges *out, const double *radius)
{
    if (in->left < out->left - TOLERANCE || in->top < out->top - TOLERANCE || in->right > out->right + TOLERANCE ||
        in->bottom > out->bottom + TOLERANCE)
        return false;
    return !cut_off(in->left, in->top, in_radius[0], out->left, out->top, radius[0]) &&
           !cut_off(-in->right, in->top, in_radius[1], -out->right, out->top, radius[1]) &&
           !cut_off(in->left, -in->bottom, in_radius[2], out->left, -out->bottom, radius[2]) &&
           !cut_off(-in->right, -in->bottom, in_radius[3], -out->right, -out->bottom, radius[3]);
}

static bool overlap(const struct edges *a, const struct edges *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

struct writer {
    struct machine_ctx *m;
    struct arg_list list;
    unsigned n[4];
};
enum { REASON, OCCLUDED, PARTIALLY, COVERED };
static const char *const keys[] = {"visibility_reason", "occluded_by", "partially_occluded_by", "covered_by"};

static strid indexed(struct writer *w, unsigned kind)
{
    return strpool_printf(&w->m->st->strings, "%s[%u]", keys[kind], w->n[kind]++);
}

static void put_reason(struct writer *w, const char *reason)
{
    arg_list_add(&w->m->st->args, &w->list, import_str(w->m->im, keys[REASON]), indexed(w, REASON), ARG_STRING,
                 import_str(w->m->im, reason));
}

static void put_layer(struct writer *w, unsigned kind, int64_t id)
{
    arg_list_add(&w->m->st->args, &w->list, import_str(w->m->im, keys[kind]), indexed(w, kind), ARG_INT, id);
}

static bool invalid_transform(const struct layer *k)
{
    struct pb_field f;
    if (!pb_find(k->bytes, LAYER_PROTO_TRANSFORM, &f))
        return false;
    struct winscope_matrix t = winscope_read_transform(pb_bytes(&f), slice_of(NULL, 0));
    return t.dsdx * t.dsdy - t.dtdx * t.dtdy == 0;
}

static void put_reasons(struct writer *w, const struct snapshot *s, const struct layer *k, bool occluded)
{
    char text[64];
    bool buffer = has_buffer(k), bounds = !edges_empty(&k->bounds);
    if (k->hidden)
        put_reason(w, "flag is hidden");
    if (k->hidden_by != COL_NULL) {
        snprintf(text, sizeof text, "hidden by parent %" PRId64, k->hidden_by);
        put_reason(w, text);
    }
    if (!buffer)
        put_reason(w, "buffer is empty");
    if (k->alpha <= 0)
        put_reason(w, "alpha is 0");
    if (!bounds)
        put_reason(w, "bounds is 0x0");
    struct winscope_box crop = winscope_read_rect(winscope_sub(k->bytes, LAYER_PROTO_CROP));
    if (!bounds && !has_fill(k) && crop.w <= 0 && crop.h <= 0)
        put_reason(w, "crop is 0x0");
    if (invalid_transform(k))
        put_reason(w, "transform is invalid");
    if (!buffer && !has_effects(k) && winscope_number(k->bytes, LAYER_PROTO_BACKGROUND_BLUR_RADIUS, 0) == 0)
        put_reason(w, "does not have color fill, shadow or blur");
    struct pb_field f;
    bool has_region = pb_find(k->bytes, LAYER_PROTO_VISIBLE_REGION, &f);
    if (!s->excludes_composition && has_region && !has_visible_region(k))
        put_reason(w, "visible region calculated by Composition Engine is empty");
    if (!s->excludes_composition && !has_region)
        put_reason(w, "null visible region");
    if (occluded)
        put_reason(w, "occluded");
}

/* Compares a layer with those above it. Layers further up come first in each list. */
static bool look_up(struct writer *w, struct snapshot *s, const struct layer *k, const uint32_t *above, size_t n)
{
    bool occluded = false;
    for (unsigned kind = OCCLUDED; kind <= COVERED; kind++) {
        if (s->looks_left < n) {
            s->cut = true;
            return occluded;
        }
        s->looks_left -= n;
        for (size_t i = 0; i < n; i++) {
            const struct layer *o = &s->layers.p[above[i]];
            if (!o->visible || o->stack != k->stack)
                continue;
            bool whole = o->opaque && inside(&k->shown, k->radius, &o->shown, o->radius);
            bool some = overlap(&k->shown, &o->shown);
            if (kind == OCCLUDED ? !whole : kind == PARTIALLY ? !o->opaque || !some || whole : o->opaque || !some)
                continue;
            occluded |= kind == OCCLUDED;
            if (s->covers_left)
                put_layer(w, kind, o->id);
            s->cut |= s->covers_left == 0;
            s->covers_left -= s->covers_left > 0;
        }
    }
    return occluded;
}

void layers_resolve(struct snapshot *s)
{
    struct args *args = &s->p->m->st->args;
    find_order(s);
    find_hidden(s);
    VEC(uint32_t) above = {0};
    for (size_t i = s->order.n; i-- > 0;) { /* from the top */
        struct layer *k = &s->layers.p[s->order.p[i]];
        struct writer w = {.m = s->p->m}, covers = {.m = s->p->m};
        k->visible = could_be_seen(s, k);
        k->shown = on_display(s, k);
        k->opaque = k->alpha >= 1 && winscope_number(k->bytes, LAYER_PROTO_IS_OPAQUE, 0);
        bool occluded = k->visible && look_up(&covers, s, k, above.p, above.n);
        if (occluded)
            k->visible = false;
        if (!k->visible)
            put_reasons(&w, s, k, occluded);
        for (size_t j = 0; j < covers.list.n; j++)
            arg_list_add(args, &w.list, covers.list.p[j].flat_key, covers.list.p[j].key, covers.list.p[j].type,
                         covers.list.p[j].word);
        k->extra = args_intern(args, w.list.p, w.list.n);
        arg_list_free(&w.list);
        arg_list_free(&covers.list);
        if (k->visible && !vec_push(&above, s->order.p[i]))
            s->p->m->im->failed = true;
    }
    vec_free(&above);
}
