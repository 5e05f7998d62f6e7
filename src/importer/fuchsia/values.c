/* Words, names and arguments of records. */
#include "importer/fuchsia/fuchsia_private.h"

#include <math.h>

enum { INLINE_STRING = 0x8000, STRING_LENGTH = 0x7fff };

/* ---- words ---- */

uint64_t fxt_word_at(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = FXT_WORD; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

uint64_t fxt_next_word(struct fxt_words *w)
{
    if (!w->n) {
        w->cut = true;
        return 0;
    }
    uint64_t v = fxt_word_at(w->p);
    w->p += FXT_WORD;
    w->n--;
    return v;
}

struct slice fxt_next_bytes(struct fxt_words *w, size_t len)
{
    size_t n = (len + FXT_WORD - 1) / FXT_WORD;
    if (n > w->n) {
        w->cut = true;
        w->n = 0;
        return slice_of(NULL, 0);
    }
    struct slice s = slice_of(w->p, len);
    w->p += n * FXT_WORD;
    w->n -= n;
    return s;
}

uint32_t fxt_bits(uint64_t word, int from, int n)
{
    return (uint32_t)(word >> from & ((1ull << n) - 1));
}

void fxt_count(struct fxt *f, enum stat_key stat)
{
    stats_add(&f->im->st->stats, f->m->id, stat, 1);
}

/* ---- names ---- */

uint64_t fxt_key_of(const struct fxt *f, uint32_t number)
{
    return (uint64_t)f->now->index << 16 | number;
}

strid fxt_string_of(struct fxt *f, uint32_t ref, struct fxt_words *w)
{
    if (!ref)
        return import_str(f->im, "");
    if (ref & INLINE_STRING) {
        struct slice s = fxt_next_bytes(w, ref & STRING_LENGTH);
        return w->cut ? 0 : import_slice(f->im, s);
    }
    const uint64_t *id = u64map_get(&f->strings, fxt_key_of(f, ref));
    if (!id)
        fxt_count(f, STAT_fuchsia_invalid_string_ref);
    return id ? (strid)*id : 0;
}

bool fxt_thread_of(struct fxt *f, uint32_t ref, struct fxt_words *w, struct fxt_thread *out)
{
    if (ref) {
        const uint64_t *at = u64map_get(&f->thread_of, fxt_key_of(f, ref));
        *out = at ? f->threads.p[*at] : (struct fxt_thread){0};
        return at != NULL;
    }
    out->pid = fxt_next_word(w);
    out->tid = fxt_next_word(w);
    return !w->cut;
}

/* ---- arguments ---- */

static bool read_value(struct fxt *f, struct fxt_words *w, struct fxt_value *out)
{
    const uint8_t *begin = w->p;
    uint64_t header = fxt_next_word(w);
    uint32_t size = fxt_bits(header, 4, 12);
    if (w->cut || !size || size - 1 > w->n) {
        w->cut = true;
        return false;
    }
    struct fxt_words own = {begin + FXT_WORD, size - 1, false};
    *out = (struct fxt_value){.kind = (uint8_t)fxt_bits(header, 0, 4)};
    out->name = fxt_string_of(f, fxt_bits(header, 16, 16), &own);
    switch (out->kind) {
    case VALUE_NULL:
        break;
    case VALUE_I32:
        out->i = (int32_t)(header >> 32);
        break;
    case VALUE_U32:
        out->u = header >> 32;
        break;
    case VALUE_I64:
    case VALUE_U64:
    case VALUE_POINTER:
    case VALUE_KOID:
    case VALUE_DOUBLE:
        out->u = fxt_next_word(&own);
        break;
    case VALUE_STRING:
        out->text = fxt_string_of(f, fxt_bits(header, 32, 16), &own);
        break;
    case VALUE_BOOL:
        out->u = fxt_bits(header, 32, 1);
        break;
    default: /* of a later version: its size is known */
        fxt_count(f, STAT_fuchsia_unknown_event_arg);
        out->name = 0;
        break;
    }
    w->p = begin + (size_t)size * FXT_WORD;
    w->n -= size - 1;
    if (own.cut)
        fxt_count(f, STAT_fuchsia_invalid_event_arg_type);
    return true;
}

void fxt_read_values(struct fxt *f, struct fxt_words *w, uint32_t n, struct fxt_values *out)
{
    struct fxt_value a;
    out->n = 0;
    for (uint32_t i = 0; i < n && !w->cut; i++) {
        if (!read_value(f, w, &a))
            return;
        if (!a.name || !strpool_view(&f->im->st->strings, a.name).len)
            fxt_count(f, STAT_fuchsia_invalid_event_arg_name);
        else
            out->p[out->n++] = a;
    }
}

argset fxt_keep_args(struct fxt *f, const struct fxt_values *all)
{
    struct args *args = &f->im->st->args;
    struct arg_list list = {0};
    for (uint32_t i = 0; i < all->n; i++) {
        const struct fxt_value *a = &all->p[i];
        static const uint8_t types[] = {
            [VALUE_NULL] = ARG_STRING,   [VALUE_I32] = ARG_INT,         [VALUE_U32] = ARG_INT,
            [VALUE_I64] = ARG_INT,       [VALUE_U64] = ARG_INT,         [VALUE_DOUBLE] = ARG_REAL,
            [VALUE_STRING] = ARG_STRING, [VALUE_POINTER] = ARG_POINTER, [VALUE_KOID] = ARG_INT,
            [VALUE_BOOL] = ARG_BOOL};
        int64_t word = a->kind == VALUE_STRING   ? (int64_t)a->text
                       : a->kind == VALUE_NULL   ? (int64_t)import_str(f->im, "null")
                       : a->kind == VALUE_DOUBLE ? column_f64_word(a->d)
                                                 : a->i;
        arg_list_add(args, &list, a->name, a->name, (enum arg_type)types[a->kind], word);
    }
    argset set = list.n ? args_intern(args, list.p, list.n) : (argset){0};
    arg_list_free(&list);
    return set;
}

bool fxt_number_of(const struct fxt_value *a, double *out)
{
    switch (a->kind) {
    case VALUE_I32:
    case VALUE_I64:
        *out = (double)a->i;
        return true;
    case VALUE_U32:
    case VALUE_U64:
        *out = (double)a->u;
        return true;
    case VALUE_DOUBLE:
        *out = a->d;
        return isfinite(a->d);
    default:
        return false;
    }
}

const struct fxt_value *fxt_find_value(const struct fxt *f, const struct fxt_values *all, const char *name)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (slice_eq_str(strpool_view(&f->im->st->strings, all->p[i].name), name))
            return &all->p[i];
    return NULL;
}
