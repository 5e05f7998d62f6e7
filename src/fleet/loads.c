/* Sets of loads. */
#include "fleet/loads.h"

#include <inttypes.h>
#include <stdlib.h>

void loads_free(struct loads *l)
{
    vec_free(&l->list);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

bool loads_have(const struct loads *l, int64_t load)
{
    return l->list.n && bsearch(&load, l->list.p, l->list.n, sizeof load, by_number);
}

static void settle(struct loads *l)
{
    size_t n = 0;
    if (l->list.n)
        qsort(l->list.p, l->list.n, sizeof *l->list.p, by_number);
    for (size_t i = 0; i < l->list.n; i++)
        if (n == 0 || l->list.p[n - 1] != l->list.p[i])
            l->list.p[n++] = l->list.p[i];
    l->list.n = n;
}

int loads_read(struct loads *out, const struct click_server *s, const char *sql, struct error *err)
{
    struct click_rows *rows;
    vec_clear(&out->list);
    int rc = click_query(s, sql, NULL, &rows, err);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 1, err)) == 1)
        if (!vec_push(&out->list, (int64_t)click_u64(rows, 0))) {
            rc = fleet_no_memory(err);
            break;
        }
    click_close(rows);
    settle(out);
    return rc;
}

int loads_without(struct loads *out, const struct loads *a, const struct loads *b, struct error *err)
{
    vec_clear(&out->list);
    for (size_t i = 0; i < a->list.n; i++)
        if (!loads_have(b, a->list.p[i]) && !vec_push(&out->list, a->list.p[i]))
            return fleet_no_memory(err);
    return 0;
}

int loads_add(struct loads *to, const struct loads *more, struct error *err)
{
    for (size_t i = 0; i < more->list.n; i++)
        if (!vec_push(&to->list, more->list.p[i]))
            return fleet_no_memory(err);
    settle(to);
    return 0;
}

void loads_put(struct click_text *t, const struct loads *l, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < l->list.n; i++)
        click_putf(t, "%s%" PRId64, i > from ? "," : "", l->list.p[i]);
}
