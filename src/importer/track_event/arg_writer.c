/* Builds dotted keys. */
#include "importer/track_event/arg_writer.h"

#include <stdlib.h>

/* A list of fewer values is looked through for a key; a longer one has an index. */
enum { SCANNED = 16 };

void arg_writer_init(struct arg_writer *w, struct args *args, struct arg_list *out)
{
    w->args = args;
    w->out = out;
    w->had = out->n;
    w->key_len = w->flat_len = w->depth = 0;
    w->next_index = (struct u64map){0};
    w->places = (struct u64map){0};
    w->n_placed = 0;
}

void arg_writer_free(struct arg_writer *w)
{
    u64map_free(&w->next_index);
    u64map_free(&w->places);
}

static void append(char *buffer, uint32_t *len, const void *text, size_t n)
{
    size_t room = ARG_KEY_MAX - *len;
    if (n > room)
        n = room;
    if (n)
        memcpy(buffer + *len, text, n);
    *len += (uint32_t)n;
}

struct arg_mark arg_writer_push(struct arg_writer *w, const void *name, size_t len)
{
    struct arg_mark m = {w->key_len, w->flat_len};
    if (w->key_len) {
        append(w->key, &w->key_len, ".", 1);
        append(w->flat, &w->flat_len, ".", 1);
    }
    append(w->key, &w->key_len, name, len);
    append(w->flat, &w->flat_len, name, len);
    return m;
}

struct arg_mark arg_writer_push_index(struct arg_writer *w, uint64_t index)
{
    struct arg_mark m = {w->key_len, w->flat_len};
    char text[24], *end = text + sizeof text, *at = end; /* from its end: printf takes a tenth of all decoding */
    *--at = ']';
    do
        *--at = (char)('0' + index % 10);
    while (index /= 10);
    *--at = '[';
    append(w->key, &w->key_len, at, (size_t)(end - at));
    return m;
}

/* The index behind the last entry that the array at the current key had before. */
static uint64_t index_before(const struct arg_writer *w)
{
    uint64_t next = 0;
    for (size_t i = 0; i < w->had; i++) {
        struct slice key = strpool_view(w->args->strings, w->out->p[i].key);
        if (key.len <= w->key_len || memcmp(key.p, w->key, w->key_len) != 0 || key.p[w->key_len] != '[')
            continue;
        uint64_t index = strtoull((const char *)key.p + w->key_len + 1, NULL, 10);
        if (index + 1 > next)
            next = index + 1;
    }
    return next;
}

uint64_t arg_writer_array_index(struct arg_writer *w)
{
    strid key = strpool_intern(w->args->strings, w->key, w->key_len);
    const uint64_t *known = u64map_get(&w->next_index, key);
    return known ? *known : w->had ? index_before(w) : 0;
}

void arg_writer_array_set(struct arg_writer *w, uint64_t next)
{
    if (!u64map_set(&w->next_index, strpool_intern(w->args->strings, w->key, w->key_len), next))
        w->args->failed = true;
}

/* The value of a key that was written before: it is replaced, not written twice. */
static struct arg *find(struct arg_writer *w, strid key)
{
    struct arg_list *out = w->out;
    if (out->n < SCANNED) {
        for (size_t i = 0; i < out->n; i++)
            if (out->p[i].key == key)
                return &out->p[i];
        return NULL;
    }
    for (; w->n_placed < out->n; w->n_placed++) {
        bool added;
        uint64_t *place = u64map_put(&w->places, out->p[w->n_placed].key, &added);
        if (!place) {
            w->args->failed = true;
            return NULL;
        }
        if (added)
            *place = w->n_placed;
    }
    const uint64_t *place = u64map_get(&w->places, key);
    return place ? &out->p[*place] : NULL;
}

void arg_writer_add(struct arg_writer *w, enum arg_type type, int64_t word)
{
    strid key = strpool_intern(w->args->strings, w->key, w->key_len);
    strid flat = w->key_len == w->flat_len ? key : strpool_intern(w->args->strings, w->flat, w->flat_len);
    struct arg *known = find(w, key);
    if (known) {
        *known = (struct arg){flat, key, word, (uint8_t)type};
        return;
    }
    arg_list_add(w->args, w->out, flat, key, type, word);
}

void arg_writer_add_bytes(struct arg_writer *w, enum arg_type type, struct slice text)
{
    arg_writer_add(w, type, strpool_intern(w->args->strings, text.p, text.len));
}
