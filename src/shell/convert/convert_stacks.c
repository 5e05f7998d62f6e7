/* Call stacks as text for flame graph tools ("a;b;c COUNT" a line), and as a flame graph in SVG. */
#include "shell/convert/convert.h"
#include "shell/convert/stack_forest.h"

#include "base/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- text -------------------------------------------------------------------------------------------------------- */

static int put_stack(struct out_file *out, const struct stack_forest *f, uint32_t node)
{
    enum { DEEPEST = 4096 };
    uint32_t path[DEEPEST];
    size_t n = 0;
    int rc = 0;
    for (uint32_t k = node; f->nodes.p[k].parent != STACK_NO_NODE && n < DEEPEST; k = f->nodes.p[k].parent)
        path[n++] = k;
    while (n-- > 0 && !rc) {
        rc = out_file_text(out, stack_name(f, path[n]));
        if (!rc && n)
            rc = out_file_text(out, ";");
    }
    char value[32];
    snprintf(value, sizeof value, " %" PRIu64 "\n", f->nodes.p[node].self);
    return rc ? rc : out_file_text(out, value);
}

static int write_collapsed(struct shell *sh, enum stack_values what, struct out_file *out, struct error *err)
{
    struct stack_forest f = {0};
    const char *unit;
    int rc = stack_forest_read(sh, &f, what, &unit, err);
    for (uint32_t i = 1; i < f.nodes.n && !rc; i++)
        if (f.nodes.p[i].self)
            rc = put_stack(out, &f, i);
    stack_forest_free(&f);
    return rc;
}

/* --- SVG --------------------------------------------------------------------------------------------------------- */

enum { WIDTH = 1200, ROW = 17, MARGIN = 10, TOP = 34, DEEPEST_ROW = 500 };

static int put_escaped(struct out_file *out, const char *text, size_t max)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    int rc = 0;
    size_t i = 0;
    for (; text[i] && i < max && !rc; i++) {
        const char *entity = NULL;
        for (size_t k = 0; k < sizeof entities / sizeof *entities; k++)
            if (entities[k].c == text[i])
                entity = entities[k].entity;
        rc = entity ? out_file_text(out, entity) : out_file_write(out, text + i, 1);
    }
    return rc;
}

/* How many bytes of a name fit into `width`, whole characters only. */
static size_t fitting(const char *name, double width)
{
    size_t max = (size_t)(width / 6.6), len = strlen(name);
    if (len <= max)
        return len;
    while (max && ((unsigned char)name[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static int put_box(struct out_file *out, const struct stack_forest *f, uint32_t node, double x, double width,
                   const char *unit)
{
    const struct stack_node *n = &f->nodes.p[node];
    const char *name = stack_name(f, node);
    unsigned hue = (unsigned)(hash_bytes(name, strlen(name)) % 55);
    double share = f->nodes.p[0].total ? 100.0 * (double)n->total / (double)f->nodes.p[0].total : 0;
    char text[512];
    snprintf(text, sizeof text,
             "<g><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u,75%%,%u%%)\" rx=\"2\"/><title>",
             x, TOP + (int)n->depth * ROW, width, ROW - 1, hue, 62 + hue % 9);
    int rc = out_file_text(out, text);
    rc = rc ? rc : put_escaped(out, name, SIZE_MAX);
    snprintf(text, sizeof text, " (%" PRIu64 "%s%s, %.2f%%)</title>", n->total, *unit ? " " : "", unit, share);
    rc = rc ? rc : out_file_text(out, text);
    size_t fits = fitting(name, width - 6);
    if (!rc && fits >= 3) {
        snprintf(text, sizeof text, "<text x=\"%.2f\" y=\"%d\">", x + 3, TOP + (int)n->depth * ROW + ROW - 5);
        rc = out_file_text(out, text);
        rc = rc ? rc : put_escaped(out, name, fits);
        rc = rc ? rc : out_file_text(out, "</text>");
    }
    return rc ? rc : out_file_text(out, "</g>\n");
}

/* Where each node begins, from left to right; those too narrow to be seen are left out with all that they call. */
static int put_boxes(struct out_file *out, const struct stack_forest *f, const char *unit)
{
    const double scale = f->nodes.p[0].total ? (double)(WIDTH - 2 * MARGIN) / (double)f->nodes.p[0].total : 0;
    double *from = mem_alloc(f->nodes.n * sizeof *from);
    int rc = from ? 0 : -MRD_ENOMEM;
    if (from)
        from[0] = MARGIN;
    for (uint32_t i = 0; i < f->nodes.n && !rc; i++) { /* parents come first */
        const struct stack_node *n = &f->nodes.p[i];
        double x = from[i], width = (double)n->total * scale;
        for (uint32_t c = n->first_child; c != STACK_NO_NODE; c = f->nodes.p[c].next) {
            from[c] = x;
            x += (double)f->nodes.p[c].total * scale;
        }
        if (width >= 0.2 && n->depth < DEEPEST_ROW)
            rc = put_box(out, f, i, from[i], width, unit);
    }
    mem_free(from);
    return rc;
}

static int write_flamegraph(struct shell *sh, enum stack_values what, struct out_file *out, struct error *err)
{
    struct stack_forest f = {0};
    const char *unit = "";
    int rc = stack_forest_read(sh, &f, what, &unit, err);
    uint32_t depth = 0;
    char head[1024];
    for (size_t i = 0; i < f.nodes.n; i++)
        depth = f.nodes.p[i].depth > depth ? f.nodes.p[i].depth : depth;
    depth = depth < DEEPEST_ROW ? depth : DEEPEST_ROW - 1;
    int height = TOP + (int)(depth + 1) * ROW + MARGIN;
    snprintf(head, sizeof head,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
             "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%%\" "
             "height=\"100%%\" fill=\"#fffdf6\"/>\n<text x=\"%d\" y=\"22\" font-size=\"15\">Flame graph%s%s</text>\n",
             WIDTH, height, WIDTH, height, MARGIN, *unit ? ": " : "", unit);
    if (!rc)
        rc = out_file_text(out, head);
    if (!rc)
        rc = put_boxes(out, &f, unit);
    if (rc == -MRD_ENOMEM)
        error_set(err, rc, "out of memory");
    stack_forest_free(&f);
    return rc ? rc : out_file_text(out, "</svg>\n");
}

/* --- formats ----------------------------------------------------------------------------------------------------- */

int convert_collapsed(struct shell *sh, struct out_file *out, struct error *err)
{
    return write_collapsed(sh, STACKS_ANY, out, err);
}

int convert_collapsed_off_cpu(struct shell *sh, struct out_file *out, struct error *err)
{
    return write_collapsed(sh, STACKS_OFF_CPU, out, err);
}

int convert_flamegraph(struct shell *sh, struct out_file *out, struct error *err)
{
    return write_flamegraph(sh, STACKS_ANY, out, err);
}

int convert_flamegraph_off_cpu(struct shell *sh, struct out_file *out, struct error *err)
{
    return write_flamegraph(sh, STACKS_OFF_CPU, out, err);
}

int convert_collapsed_wakers(struct shell *sh, struct out_file *out, struct error *err)
{
    return write_collapsed(sh, STACKS_WAKERS, out, err);
}

int convert_flamegraph_wakers(struct shell *sh, struct out_file *out, struct error *err)
{
    return write_flamegraph(sh, STACKS_WAKERS, out, err);
}
