/* Writes args sets as JSON. */
#include "sql/args_json.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/probe.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

static void json_value(struct json_writer *w, const struct storage *st, const struct arg *a)
{
    bool is_text = a->type == ARG_STRING || a->type == ARG_JSON; /* else the word is not a string id */
    struct slice text = is_text ? strpool_view(&st->strings, (strid)a->word) : slice_of("", 0);
    char number[40];
    switch (a->type) {
    case ARG_INT:
        json_put_int(w, a->word);
        break;
    case ARG_UINT:
        json_put_uint(w, (uint64_t)a->word);
        break;
    case ARG_POINTER:
        sqlite3_snprintf(sizeof number, number, "0x%llx", (unsigned long long)a->word);
        json_put_str(w, number);
        break;
    case ARG_BOOL:
        json_put_bool(w, a->word != 0);
        break;
    case ARG_REAL:
        if (isfinite(column_f64(a->word))) {
            sqlite3_snprintf(sizeof number, number, "%!.17g", column_f64(a->word));
            json_put_raw(w, number, strlen(number));
        } else {
            json_put_null(w); /* JSON has no infinity */
        }
        break;
    case ARG_STRING:
    case ARG_JSON: /* a text that should have been JSON: what is JSON has become args */
        json_put_bytes(w, text.p, text.len);
        break;
    default:
        json_put_null(w);
    }
}

struct json_item {
    struct slice key, part; /* what is left of the key, and the first part of that */
    const struct arg *arg;
    size_t next; /* the next item of the same part; NO_ITEM: none */
};

#define NO_ITEM SIZE_MAX

/* The first part of a key: "a" of "a.b", "[2]" of "[2].b"; what follows is in *rest. */
static struct slice first_part(struct slice key, struct slice *rest)
{
    size_t n = 0;
    if (key.len && key.p[0] == '[') {
        while (n < key.len && key.p[n] != ']')
            n++;
        n += n < key.len;
    } else {
        while (n < key.len && key.p[n] != '.' && key.p[n] != '[')
            n++;
    }
    size_t skip = n < key.len && key.p[n] == '.' ? n + 1 : n;
    *rest = slice_of(key.p + skip, key.len - skip);
    return slice_of(key.p, n);
}

enum { MAX_JSON_DEPTH = 64 };

/* Chains the items of each part, and leaves in `heads` the first item of each. Their number; 0: out of memory. */
static size_t chain_parts(struct json_item *items, size_t n, size_t *heads)
{
    size_t slots = 4, n_heads = 0;
    while (slots < 2 * n)
        slots *= 2;
    size_t *table = mem_alloc(2 * slots * sizeof *table); /* first and last item of a part */
    if (!table)
        return 0;
    size_t *tails = table + slots;
    memset(table, 0xff, slots * sizeof *table);
    const uint64_t secret = hash_secret(); /* nobody knows which parts belong into one slot */
    for (size_t i = 0; i < n; i++) {
        struct slice rest, part = items[i].part = first_part(items[i].key, &rest);
        size_t slot;
        probe_each(slot, (size_t)hash_bytes_seeded(part.p, part.len, secret), slots,
                   table[slot] != NO_ITEM) if (slice_eq(items[table[slot]].part, part)) break;
        items[i].next = NO_ITEM;
        if (table[slot] == NO_ITEM)
            heads[n_heads++] = table[slot] = i;
        else
            items[tails[slot]].next = i;
        tails[slot] = i;
    }
    mem_free(table);
    return n_heads;
}

/* Below the deepest level that is nested, what is left of the keys stays as it is: {"c.d": 1, "c.e": 2}. */
static void json_flat_items(struct json_writer *w, const struct storage *st, const struct json_item *items, size_t n)
{
    json_put_open(w, '{');
    for (size_t i = 0; i < n; i++) {
        json_put_key_bytes(w, items[i].key.p, items[i].key.len);
        json_value(w, st, items[i].arg);
    }
    json_put_close(w, '}');
}

static bool json_items(struct json_writer *w, const struct storage *st, struct json_item *items, size_t n, int depth);

/* The value of the part that begins at items[head]; `inside` is room for as many items as there are. */
static bool json_part(struct json_writer *w, const struct storage *st, struct json_item *items, size_t head,
                      struct json_item *inside, int depth)
{
    const struct arg *leaf = NULL;
    size_t n_inside = 0;
    for (size_t k = head; k != NO_ITEM; k = items[k].next) {
        struct slice rest;
        first_part(items[k].key, &rest);
        if (rest.len == 0)
            leaf = items[k].arg;
        else
            inside[n_inside++] = (struct json_item){.key = rest, .arg = items[k].arg};
    }
    if (n_inside)
        return json_items(w, st, inside, n_inside, depth + 1);
    json_value(w, st, leaf);
    return true;
}

/* Items that share the parts before become one object or array; order is that of first appearance. False when out of
 * memory. */
static bool json_items(struct json_writer *w, const struct storage *st, struct json_item *items, size_t n, int depth)
{
    if (depth >= MAX_JSON_DEPTH) {
        json_flat_items(w, st, items, n);
        return true;
    }
    bool array = items[0].key.len && items[0].key.p[0] == '[';
    struct json_item *inside = mem_alloc(n * sizeof *inside);
    size_t *heads = mem_alloc(n * sizeof *heads);
    size_t n_heads = inside && heads ? chain_parts(items, n, heads) : 0;
    bool ok = n_heads > 0;
    json_put_open(w, array ? '[' : '{');
    for (size_t i = 0; ok && i < n_heads; i++) {
        if (!array)
            json_put_key_bytes(w, items[heads[i]].part.p, items[heads[i]].part.len);
        ok = json_part(w, st, items, heads[i], inside, depth);
    }
    json_put_close(w, array ? ']' : '}');
    mem_free(inside);
    mem_free(heads);
    return ok;
}

enum { MAX_PLAIN_KEYS = 32 };

/* Are the keys different ones without dots and indices, as those of most events? */
static bool keys_are_plain(const struct storage *st, const struct arg_list *l)
{
    if (l->n > MAX_PLAIN_KEYS)
        return false;
    for (size_t i = 0; i < l->n; i++) {
        struct slice key = strpool_view(&st->strings, l->p[i].key);
        if (memchr(key.p, '.', key.len) || memchr(key.p, '[', key.len))
            return false;
        for (size_t k = 0; k < i; k++)
            if (l->p[k].key == l->p[i].key)
                return false;
    }
    return true;
}

static void put_plain(struct json_writer *w, const struct storage *st, const struct arg_list *l)
{
    json_put_open(w, '{');
    for (size_t i = 0; i < l->n; i++) {
        struct slice key = strpool_view(&st->strings, l->p[i].key);
        json_put_key_bytes(w, key.p, key.len);
        json_value(w, st, &l->p[i]);
    }
    json_put_close(w, '}');
}

int args_json_put(struct args_json *j, const struct storage *st, argset set, struct json_writer *w)
{
    j->list.n = 0;
    args_values(&st->args, set, &j->list);
    if (j->list.n == 0)
        return 0;
    if (keys_are_plain(st, &j->list)) {
        put_plain(w, st, &j->list);
        return 1;
    }
    if (j->list.n > j->cap && !vec_reserve_((void **)&j->items, &j->cap, sizeof *j->items, j->list.n))
        return -MRD_ENOMEM;
    for (size_t i = 0; i < j->list.n; i++)
        j->items[i] = (struct json_item){.key = strpool_view(&st->strings, j->list.p[i].key), .arg = &j->list.p[i]};
    return json_items(w, st, j->items, j->list.n, 0) ? 1 : -MRD_ENOMEM;
}

void args_json_free(struct args_json *j)
{
    arg_list_free(&j->list);
    mem_free(j->items);
    *j = (struct args_json){0};
}
