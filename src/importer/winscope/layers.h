/* The layers of one snapshot of SurfaceFlinger, while it is imported. */
#ifndef MERIDIAN_IMPORTER_WINSCOPE_LAYERS_H
#define MERIDIAN_IMPORTER_WINSCOPE_LAYERS_H

#include "importer/winscope/winscope_internal.h"

#include "base/vec.h"

enum { HIDDEN_FLAG = 1, OPAQUE_FLAG = 2, OFFSCREEN_ROOT = 0x7ffffffd };

struct edges {
    double left, top, right, bottom;
};

struct layer {
    struct slice bytes;
    int64_t id, parent, z, relative; /* COL_NULL when absent; z 0 */
    uint32_t stack, flags;
    bool has_color, has_screen_bounds;
    double red, green, blue, alpha;
    struct edges bounds, screen;
    double radius[4]; /* tl, tr, bl, br; NAN: not said */
    /* Found by layers_resolve(). */
    bool hidden, visible, placed, opaque;
    struct edges shown; /* of what is visible: the part of `screen` on its display */
    int64_t hidden_by;  /* an ancestor, COL_NULL: none */
    argset extra;
};

struct display {
    uint32_t stack;
    bool on;
    struct winscope_box rect, size;
    struct winscope_matrix transform;
};

/* A snapshot of some dozen bytes a layer may be of layers that all lie above each other: what it takes to compare them
 * with each other, and to say so, is bounded. A device has some hundred, and 32 displays. */
enum {
    MAX_LAYERS = 1 << 16,
    MAX_DISPLAYS = 1024,
    MAX_LOOKS = 1 << 22,   /* from one layer at another */
    SOME_COVERS = 1 << 14, /* layers that others are said to lie below, and */
    BYTES_FOR_A_COVER = 4, /* one more for so many bytes of the snapshot */
};

struct snapshot {
    struct packet *p;
    size_t looks_left, covers_left;
    bool cut; /* something was too much */
    bool excludes_composition;
    uint32_t row;
    struct u64map by_id; /* id -> index */
    VEC(struct layer)
    layers;
    VEC(struct display)
    displays;
    VEC(uint32_t)
    order; /* indices, bottom to top */
};

static inline bool edges_empty(const struct edges *e)
{
    return !(e->right > e->left && e->bottom > e->top);
}

/* The layer with an id, NULL when there is none. */
struct layer *layers_find(const struct snapshot *s, int64_t id);
/* The drawing order, what can be seen, and why the rest cannot (args of each layer). */
void layers_resolve(struct snapshot *s);

#endif
