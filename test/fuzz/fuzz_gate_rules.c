/* Fuzzes the gate's rules and baselines: text of any kind is read or refused with a line number, what was read can be
 * walked, and a baseline that was read is written and read again as it was. */
#include "base/json_writer.h"
#include "compare/gate.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>

struct text {
    VEC(char)
    bytes;
};

static int put(void *ctx, const void *bytes, size_t len)
{
    struct text *t = ctx;
    if (!vec_reserve(&t->bytes, t->bytes.n + len))
        abort();
    memcpy(t->bytes.p + t->bytes.n, bytes, len);
    t->bytes.n += len;
    return 0;
}

/* Every number of a node is that of one before it, so that a walk ends. */
static void walk(const struct gate_rules *r)
{
    for (size_t i = 0; i < r->nodes.n; i++)
        if (r->nodes.p[i].kind == GATE_CALCULATED && (r->nodes.p[i].left >= i || r->nodes.p[i].right >= i))
            abort();
    for (size_t i = 0; i < r->rules.n; i++)
        if (r->rules.p[i].left >= r->nodes.n || r->rules.p[i].right >= r->nodes.n || !r->rules.p[i].text)
            abort();
}

static void rules(struct slice text)
{
    struct gate_rules r;
    struct error err = {0};
    int rc = gate_rules_parse(&r, text, &err);
    if (rc == 0 ? !r.rules.n : !err.text[0])
        abort();
    if (rc == 0)
        walk(&r);
    gate_rules_free(&r);
}

static void baseline(struct slice json)
{
    struct gate_baseline b, again;
    struct text t = {0};
    struct error err = {0};
    bool finite = true;
    if (gate_baseline_parse(&b, json, &err) == 0) {
        for (size_t i = 0; i < b.n; i++)
            for (size_t k = 0; k < b.p[i].values.n; k++)
                finite &= isfinite(b.p[i].values.p[k]) != 0;
        gate_baseline_print(&b, put, &t);
        if (finite && (gate_baseline_parse(&again, slice_of(t.bytes.p, t.bytes.n), &err) < 0 || again.n > b.n))
            abort();
        if (finite)
            gate_baseline_free(&again);
    } else if (!err.text[0]) {
        abort();
    }
    vec_free(&t.bytes);
    gate_baseline_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* of just that size */
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    rules(slice_of(copy, size));
    baseline(slice_of(copy, size));
    free(copy);
    return 0;
}
