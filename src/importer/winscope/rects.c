/* Rectangles and matrices: equal ones share a row. */
#include "importer/winscope/winscope_internal.h"

#include "base/hash.h"

#include <math.h>

enum { PER_UNIT = 1000000 /* values that differ by less than a millionth are equal */ };

const struct winscope_matrix winscope_identity = {.dsdx = 1, .dsdy = 1};

static uint64_t key_of(const struct winscope_machine *w, const double *values, size_t n)
{
    uint64_t key = w->m->im->secret;
    for (size_t i = 0; i < n; i++) {
        double scaled = values[i] * (double)PER_UNIT;
        int64_t word = fabs(scaled) < 9e18 ? llround(scaled) : column_f64_word(values[i]);
        key = hash_combine(key, (uint64_t)word);
    }
    return key;
}

uint32_t winscope_rect_row(struct winscope_machine *w, struct winscope_box box)
{
    bool added = false;
    uint64_t *row = u64map_put(&w->rects, key_of(w, (double[]){box.x, box.y, box.w, box.h}, 4), &added);
    if (!row) {
        w->m->im->failed = true;
        return 0;
    }
    if (added)
        *row =
            winscope_rect_insert(w->m->st, &(struct winscope_rect_row){.x = box.x, .y = box.y, .w = box.w, .h = box.h});
    return (uint32_t)*row;
}

uint32_t winscope_transform_row(struct winscope_machine *w, const struct winscope_matrix *t)
{
    bool added = false;
    uint64_t *row =
        u64map_put(&w->transforms, key_of(w, (double[]){t->dsdx, t->dtdx, t->tx, t->dtdy, t->dsdy, t->ty}, 6), &added);
    if (!row) {
        w->m->im->failed = true;
        return 0;
    }
    if (added)
        *row = winscope_transform_insert(
            w->m->st,
            &(struct winscope_transform_row){
                .dsdx = t->dsdx, .dtdx = t->dtdx, .tx = t->tx, .dtdy = t->dtdy, .dsdy = t->dsdy, .ty = t->ty});
    return (uint32_t)*row;
}

struct winscope_box winscope_read_rect(struct slice bytes)
{
    double left = (double)(int32_t)winscope_number(bytes, RECT_PROTO_LEFT, 0),
           top = (double)(int32_t)winscope_number(bytes, RECT_PROTO_TOP, 0),
           right = (double)(int32_t)winscope_number(bytes, RECT_PROTO_RIGHT, 0),
           bottom = (double)(int32_t)winscope_number(bytes, RECT_PROTO_BOTTOM, 0);
    return (struct winscope_box){left, top, right - left, bottom - top};
}
