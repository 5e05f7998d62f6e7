/* __INTRINSIC_ARG_SET_TO_JSON: the key/value details of an event as one JSON text. */
#include "sql/functions/functions.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/probe.h"

#include <math.h>
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
    for (size_t i = 0; i < n; i++) {
        struct slice rest, part = items[i].part = first_part(items[i].key, &rest);
        size_t slot;
        probe_each(slot, (size_t)hash_bytes(part.p, part.len), slots,
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

static void arg_set_to_json(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct storage *st = engine_storage(function_engine(ctx));
    struct arg_list list = {0};
    VEC(struct json_item)
    items = {0};
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER) {
        function_error(ctx, "ARG_SET_TO_JSON: 1st argument should be arg set id");
        return;
    }
    args_values(&st->args, args_of_cell(&st->args, sqlite3_value_int64(argv[0])), &list);
    bool ok = vec_reserve(&items, list.n);
    for (size_t i = 0; ok && i < list.n; i++)
        vec_push(&items, (struct json_item){.key = strpool_view(&st->strings, list.p[i].key), .arg = &list.p[i]});
    if (items.n) {
        sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
        struct json_writer w = function_json_writer(s);
        ok = json_items(&w, st, items.p, items.n, 0);
        function_result_built(ctx, s);
    }
    if (!ok)
        sqlite3_result_error_nomem(ctx);
    vec_free(&items);
    arg_list_free(&list);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_arg_set_to_json", .n_args = 1, .scalar = arg_set_to_json},
};

FUNCTION_ROWS(args, rows);
