/* Draws the call stacks or slices of two sides as one flame graph. */
#include "shell/commands/diff_flame.h"

#include "shell/commands/compare_load.h"
#include "shell/compare/html_page.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 1200, ROW = 17, MARGIN = 10, TOP = 54, DEEPEST = 500 };

/* Both sides in one forest. */
struct both {
    struct stack_forest forest;
    double *total[2]; /* [nodes] of each node with all below it */
    const char *unit;
    bool failed;
};

int diff_flame_add(struct diff_flame *f, struct shell *sh, const char *path, int side, struct error *err)
{
    const char *unit = "";
    int rc = stack_forest_read(sh, &f->side[side], STACKS_ANY, &unit, err);
    if (rc < 0)
        return error_prefix(err, "--flamegraph: %s", path);
    for (int s = 0; s < 2; s++)
        if (f->unit[s] && strcmp(f->unit[s], unit) != 0)
            return error_set(err, -MRD_EINVALID,
                             "--flamegraph: %s has stacks counted in %s, a recording before it in %s: they cannot be "
                             "compared",
                             path, *unit ? unit : "values", *f->unit[s] ? f->unit[s] : "values");
    f->unit[side] = unit;
    return 0;
}

void diff_flame_free(struct diff_flame *f)
{
    for (int s = 0; s < 2; s++)
        stack_forest_free(&f->side[s]);
}

/* Adds the nodes of a side; `self` gets their own values. */
static void merge(struct both *b, const struct stack_forest *f, uint32_t *place)
{
    for (size_t i = 0; i < f->nodes.n && !b->forest.failed; i++) {
        const struct stack_node *n = &f->nodes.p[i];
        uint32_t parent = n->parent == STACK_NO_NODE ? STACK_NO_NODE : place[n->parent];
        place[i] = stack_node(&b->forest, parent, stack_name(f, (uint32_t)i));
    }
}

static bool merge_both(struct both *b, const struct diff_flame *f)
{
    uint32_t *place[2] = {0};
    for (int s = 0; s < 2; s++) {
        place[s] = mem_alloc((f->side[s].nodes.n + 1) * sizeof **place);
        if (place[s])
            merge(b, &f->side[s], place[s]);
        b->failed |= !place[s];
    }
    b->failed |= b->forest.failed;
    for (int s = 0; s < 2 && !b->failed; s++) {
        b->total[s] = mem_zalloc(b->forest.nodes.n * sizeof **b->total);
        b->failed = !b->total[s];
        for (size_t i = 0; i < f->side[s].nodes.n && !b->failed; i++)
            b->total[s][place[s][i]] += (double)f->side[s].nodes.p[i].self;
        for (size_t k = b->forest.nodes.n; k-- > 1 && !b->failed;) /* children stand behind their parents */
            b->total[s][b->forest.nodes.p[k].parent] += b->total[s][k];
    }
    mem_free(place[0]);
    mem_free(place[1]);
    return !b->failed;
}

static double share(const struct both *b, int side, uint32_t node)
{
    return b->total[side][0] > 0 ? b->total[side][node] / b->total[side][0] : 0;
}

static void draw_box(struct text_out *o, const struct both *b, uint32_t node, double x, double width)
{
    const char *name = stack_name(&b->forest, node);
    double before = share(b, 0, node), after = share(b, 1, node);
    double change = before + after > 0 ? (after - before) / (before + after) : 0; /* -1 to 1 */
    int y = TOP + (int)b->forest.nodes.p[node].depth * ROW;
    out_printf(
        o, "<g><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%d,78%%,%.0f%%)\" rx=\"2\"/><title>",
        x, y, width, ROW - 1, change > 0 ? 6 : 214, 94 - 36 * fabs(change));
    html_text(o, name);
    out_printf(o, " (A %.2f%%, B %.2f%%, %+.2f; %.0f and %.0f", 100 * before, 100 * after, 100 * (after - before),
               b->total[0][node], b->total[1][node]);
    out_printf(o, "%s%s)</title>", *b->unit ? " " : "", b->unit);
    size_t fits = width > 6 ? (size_t)((width - 6) / 6.6) : 0, len = strlen(name);
    if (fits >= 3) {
        char cut[256];
        size_t keep = len < fits ? len : fits;
        keep = keep < sizeof cut ? keep : sizeof cut - 1;
        while (keep < len && keep && ((unsigned char)name[keep] & 0xc0) == 0x80)
            keep--;
        memcpy(cut, name, keep);
        cut[keep] = 0;
        out_printf(o, "<text x=\"%.2f\" y=\"%d\">", x + 3, y + ROW - 5);
        html_text(o, cut);
        out_text(o, "</text>");
    }
    out_text(o, "</g>\n");
}

static void draw(struct text_out *o, const void *what)
{
    const struct both *b = what;
    uint32_t depth = 0;
    for (size_t i = 0; i < b->forest.nodes.n; i++)
        depth = b->forest.nodes.p[i].depth > depth ? b->forest.nodes.p[i].depth : depth;
    depth = depth < DEEPEST ? depth : DEEPEST - 1;
    int height = TOP + (int)(depth + 1) * ROW + MARGIN;
    out_printf(o,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
               "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%%\" "
               "height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"22\" font-size=\"15\">Differential flame "
               "graph%s%s</text>\n<text x=\"%d\" y=\"40\">red: a larger share in B; blue: a larger share in A; width: "
               "the mean of both shares</text>\n",
               WIDTH, height, WIDTH, height, MARGIN, *b->unit ? ": " : "", b->unit, MARGIN);
    double *from = mem_zalloc(b->forest.nodes.n * sizeof *from);
    if (from)
        from[0] = MARGIN;
    for (uint32_t i = 0; i < b->forest.nodes.n && from; i++) { /* parents come first */
        double x = from[i];
        for (uint32_t c = b->forest.nodes.p[i].first_child; c != STACK_NO_NODE; c = b->forest.nodes.p[c].next) {
            from[c] = x;
            x += (share(b, 0, c) + share(b, 1, c)) / 2 * (WIDTH - 2 * MARGIN);
        }
        double width = (share(b, 0, i) + share(b, 1, i)) / 2 * (WIDTH - 2 * MARGIN);
        if (width >= 0.2 && b->forest.nodes.p[i].depth < DEEPEST)
            draw_box(o, b, i, from[i], width);
    }
    mem_free(from);
    out_text(o, "</svg>\n");
}

int diff_flame_write(const struct diff_flame *f, const char *path, struct error *err)
{
    struct both b = {.unit = f->unit[1] ? f->unit[1] : ""};
    int rc = merge_both(&b, f) ? compare_write(path, draw, &b, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    stack_forest_free(&b.forest);
    mem_free(b.total[0]);
    mem_free(b.total[1]);
    return rc;
}
