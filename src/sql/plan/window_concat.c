/* group_concat() as a window function: the texts of the rows in the frame, put together for each row. */
#include "sql/plan/window_private.h"

enum {
    MAX_TEXTS = 250000, /* that are new to the string pool, which never gives anything back */
    MAX_BYTES = 16 << 20,
    LONG = 1 << 16 /* bytes that take a while to be put together */
};

struct concat {
    const struct partition *p;
    enum plan_type type;
    struct format_text text;
    int64_t from, to; /* rows whose values are in it */
    bool any, had;    /* a value is in it, or was */
};

static void fail(const struct concat *c, int rc)
{
    struct run *r = c->p->w->r;
    r->rc = r->rc ? r->rc : rc;
}

/* SQLite forgets what separates values when those that are left are empty: it shall do that itself. */
static void add(struct concat *c, int64_t at)
{
    const struct partition *p = c->p;
    const struct strpool *strings = &p->w->r->e->storage->strings;
    if (p->args[at] == p->null || (p->filter && p->filter[at] != 1))
        return;
    if (c->type == PLAN_TEXT && p->of->frame >= FRAME_SLIDING && !strpool_view(strings, (strid)p->args[at]).len)
        fail(c, RUN_GAVE_UP);
    if ((c->any && !format_put_text(&c->text, p->of->separator)) ||
        !format_put(&c->text, strings, c->type, p->args[at]))
        fail(c, SQLITE_NOMEM);
    if (c->text.n > MAX_BYTES)
        fail(c, RUN_GAVE_UP);
    c->any = c->had = true;
}

/* Makes the text of [lo, hi); frames only go forward. */
static void move(struct concat *c, int64_t lo, int64_t hi)
{
    if (lo > c->from) {
        c->from = c->to = lo;
        c->text.n = 0;
        c->any = false;
    }
    for (; c->to < hi && !c->p->w->r->rc; c->to++)
        add(c, c->to);
    if (!c->any && c->had) /* NULL, or an empty text */
        fail(c, RUN_GAVE_UP);
}

void window_concat(const struct partition *p, enum plan_type type)
{
    struct run *r = p->w->r;
    struct strpool *strings = &r->e->storage->strings;
    struct concat c = {.p = p, .type = type, .from = p->from, .to = p->from};
    struct walk walk = {.peers_end = p->from};
    for (uint32_t i = p->from; i < p->to && !r->rc; i++) {
        int64_t lo, hi;
        uint32_t before = strings->n;
        window_frame_of(p, i, &walk, &lo, &hi);
        move(&c, lo, hi);
        if ((i % BATCH == 0 || c.text.n > LONG) && run_stopped(r))
            break;
        p->out[i] = c.text.n ? strpool_intern(strings, c.text.p, c.text.n) : 0; /* empty texts alone are NULL, too */
        if (c.text.n && !p->out[i])
            fail(&c, SQLITE_NOMEM);
        if (strings->n == before)
            continue;
        run_note_texts(r, before, c.text.n);
        p->w->n_texts++;
        p->w->text_bytes += c.text.n;
        if (p->w->n_texts > MAX_TEXTS || p->w->text_bytes > MAX_BYTES)
            fail(&c, RUN_GAVE_UP);
    }
    mem_free(c.text.p);
}
