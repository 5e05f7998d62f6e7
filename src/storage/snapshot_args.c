/* Sets of args in a snapshot.
 *
 * All sets are decoded when the snapshot is written: what decodes them needs the trace and the import's state, and
 * neither is there later. Sets with the same keys and types (the events of one kind, mostly) are a shape: a column of
 * values for each key, which takes less than the payload did. Sets of shapes that are rare are generic: their values
 * lie one after the other, each with its key. */
#include "base/hash.h"
#include "storage/snapshot_file.h"
#include "storage/snapshot_writer.h"

enum {
    SHAPE_SETS = 32,       /* so many sets make a shape worth its columns; those before are generic */
    SHAPE_KEYS_MAX = 1024, /* larger sets are generic */
    SHAPES_MAX = 1 << 16,
};

/* ---- writing ---- */

/* A column that is written as it grows: only the headers of its chunks stay in memory. */
struct growing {
    int64_t *tail;
    uint32_t n, cap;
    uint64_t rows;
    VEC(struct col_chunk) chunks;
    VEC(uint64_t) sums;
};

struct shape {
    uint32_t first_key; /* in known_keys */
    uint32_t n_keys;
    uint32_t seen;
    uint32_t number; /* in the file; 0: not yet */
    uint32_t rows;
    struct growing *columns;
};

struct args_out {
    struct snapshot_writer *w;
    struct growing set[SNAPSHOT_SET_COLUMNS];
    struct growing value[SNAPSHOT_VALUE_COLUMNS];
    VEC(struct shape) shapes;
    VEC(struct snapshot_key) known_keys;
    struct u64map by_hash; /* of keys -> index of shapes + 1 */
    uint32_t n_numbers;
};

static const enum col_type set_types[SNAPSHOT_SET_COLUMNS] = {COL_U32, COL_U32, COL_U32, COL_U32};
static const enum col_type value_types[SNAPSHOT_VALUE_COLUMNS] = {COL_STR, COL_STR, COL_U32, COL_I64};

static void flush(struct snapshot_writer *w, struct growing *g, enum col_type type)
{
    struct col_chunk k;
    uint64_t sum;
    if (!g->n)
        return;
    memcpy(w->words, g->tail, g->n * sizeof *g->tail);
    if (!column_pack(w->words, g->n, type, &k)) {
        snapshot_no_memory(w);
        return;
    }
    void *codes = k.data;
    snapshot_put_chunk(w, &k, codes, g->n, type, &sum);
    mem_free(codes);
    if (!vec_push(&g->chunks, k) || !vec_push(&g->sums, sum))
        snapshot_no_memory(w);
    g->n = 0;
}

static void add_word(struct snapshot_writer *w, struct growing *g, enum col_type type, int64_t word)
{
    if (g->n == g->cap) {
        uint32_t cap = g->cap ? g->cap * 4 : SHAPE_SETS;
        int64_t *tail = mem_realloc(g->tail, cap * sizeof *tail);
        if (!tail) {
            snapshot_no_memory(w);
            return;
        }
        g->tail = tail;
        g->cap = cap;
    }
    g->tail[g->n++] = word;
    g->rows++;
    if (g->n == COL_CHUNK_ROWS)
        flush(w, g, type);
}
static_assert((COL_CHUNK_ROWS & (SHAPE_SETS - 1)) == 0, "a tail grows to a chunk");

/* The rest of a column goes out, its headers follow those of the others. */
static void end_column(struct snapshot_writer *w, struct growing *g, enum col_type type)
{
    flush(w, g, type);
    struct snapshot_column c = {.first_chunk = w->chunks.n,
                                .n_chunks = (uint32_t)g->chunks.n,
                                .type = (uint8_t)type,
                                .min = INT64_MAX,
                                .max = INT64_MIN};
    for (size_t i = 0; i < g->chunks.n; i++) {
        const struct col_chunk *k = &g->chunks.p[i];
        c.has_null |= k->has_null;
        c.min = k->min < c.min ? k->min : c.min;
        c.max = k->max > c.max ? k->max : c.max;
        if (!vec_push(&w->chunks, *k) || !vec_push(&w->sums, g->sums.p[i]))
            snapshot_no_memory(w);
    }
    if (!vec_push(&w->columns, c))
        snapshot_no_memory(w);
}

static void free_growing(struct growing *g)
{
    mem_free(g->tail);
    vec_free(&g->chunks);
    vec_free(&g->sums);
}

static bool same_keys(const struct args_out *o, const struct shape *s, const struct arg_list *list)
{
    if (s->n_keys != list->n)
        return false;
    for (size_t i = 0; i < list->n; i++) {
        const struct snapshot_key *k = &o->known_keys.p[s->first_key + i];
        if (k->key != list->p[i].key || k->flat_key != list->p[i].flat_key || k->type != list->p[i].type)
            return false;
    }
    return true;
}

/* The shape of a list; NULL when it is to be generic. */
static struct shape *shape_of(struct args_out *o, const struct arg_list *list)
{
    uint64_t hash = list->n;
    if (list->n > SHAPE_KEYS_MAX)
        return NULL;
    for (size_t i = 0; i < list->n; i++)
        hash = hash_combine(hash_combine(hash, (uint64_t)list->p[i].key << 32 | list->p[i].flat_key), list->p[i].type);
    uint64_t *at = o->shapes.n < SHAPES_MAX ? u64map_put(&o->by_hash, hash, NULL) : u64map_get(&o->by_hash, hash);
    if (!at)
        return NULL;
    if (*at)
        return same_keys(o, &o->shapes.p[*at - 1], list) ? &o->shapes.p[*at - 1] : NULL;
    struct shape s = {.first_key = (uint32_t)o->known_keys.n, .n_keys = (uint32_t)list->n};
    for (size_t i = 0; i < list->n; i++)
        if (!vec_push(&o->known_keys, (struct snapshot_key){list->p[i].flat_key, list->p[i].key, list->p[i].type}))
            snapshot_no_memory(o->w);
    if (!vec_push(&o->shapes, s))
        return NULL;
    *at = o->shapes.n;
    return vec_last(&o->shapes);
}

static void begin_shape(struct args_out *o, struct shape *s)
{
    s->columns = mem_zalloc(s->n_keys * sizeof *s->columns);
    if (s->columns)
        s->number = ++o->n_numbers;
}

static void add_set_row(struct args_out *o, int64_t shape, int64_t row, int64_t len, int64_t defaults)
{
    int64_t words[SNAPSHOT_SET_COLUMNS] = {shape, row, len, defaults};
    for (int i = 0; i < SNAPSHOT_SET_COLUMNS; i++)
        add_word(o->w, &o->set[i], set_types[i], words[i]);
}

static void write_set(struct args_out *o, const struct arg_list *list, int64_t defaults)
{
    struct shape *s = list->n ? shape_of(o, list) : NULL;
    if (s && ++s->seen >= SHAPE_SETS && !s->columns)
        begin_shape(o, s);
    if (s && s->columns && s->rows < UINT32_MAX) {
        add_set_row(o, s->number, s->rows++, (int64_t)list->n, defaults);
        for (size_t i = 0; i < list->n; i++)
            add_word(o->w, &s->columns[i], COL_I64, list->p[i].word);
        return;
    }
    add_set_row(o, SNAPSHOT_GENERIC, (int64_t)o->value[0].rows, (int64_t)list->n, defaults);
    for (size_t i = 0; i < list->n; i++) {
        int64_t words[SNAPSHOT_VALUE_COLUMNS] = {list->p[i].flat_key, list->p[i].key, list->p[i].type, list->p[i].word};
        for (int c = 0; c < SNAPSHOT_VALUE_COLUMNS; c++)
            add_word(o->w, &o->value[c], value_types[c], words[c]);
    }
    if (o->value[0].rows >= UINT32_MAX && !o->w->rc)
        o->w->rc = error_set(o->w->err, -MRD_ELIMIT, "more than %u values of args that are unlike others", UINT32_MAX);
}

static bool has_defaults(const struct args *a, uint32_t set)
{
    if (a->base.values) /* a snapshot that is written again */
        return true;
    return a->sets.p[set].kind_aux >> ARGS_AUX_BITS == ARGS_HAVE_DEFAULTS;
}

/* The sets that queries know, then those with the defaults of some of them. */
static void write_sets(struct args_out *o)
{
    struct args *a = &o->w->st->args;
    struct arg_list list = {0};
    VEC(uint32_t) with_defaults = {0};
    uint32_t n = args_count(a);
    for (uint32_t i = 0; i < n && !o->w->rc; i++) {
        int64_t defaults = 0;
        list.n = 0;
        if (has_defaults(a, i))
            args_values_by(a, ARGS_WITH_DEFAULTS, (argset){i + 1}, &list);
        if (list.n) {
            if (!vec_push(&with_defaults, i))
                snapshot_no_memory(o->w);
            defaults = (int64_t)n + (int64_t)with_defaults.n;
        }
        list.n = 0;
        args_values(a, (argset){i + 1}, &list);
        write_set(o, &list, defaults);
    }
    for (size_t i = 0; i < with_defaults.n && !o->w->rc; i++) {
        list.n = 0;
        args_values_by(a, ARGS_WITH_DEFAULTS, (argset){with_defaults.p[i] + 1}, &list);
        write_set(o, &list, 0);
    }
    o->w->trailer.n_sets = n;
    o->w->trailer.n_all_sets = n + (uint32_t)with_defaults.n;
    arg_list_free(&list);
    vec_free(&with_defaults);
}

/* Shapes that have columns, by their numbers. */
static void end_shapes(struct args_out *o)
{
    struct snapshot_writer *w = o->w;
    uint32_t *by_number = mem_zalloc(((size_t)o->n_numbers + 1) * sizeof *by_number);
    for (size_t i = 0; by_number && i < o->shapes.n; i++)
        by_number[o->shapes.p[i].number] = (uint32_t)i;
    for (uint32_t n = 1; by_number && n <= o->n_numbers; n++) {
        struct shape *s = &o->shapes.p[by_number[n]];
        if (!vec_push(&w->shapes, (struct snapshot_shape){(uint32_t)w->keys.n, s->n_keys, s->rows}))
            snapshot_no_memory(w);
        for (uint32_t i = 0; i < s->n_keys; i++) {
            if (!vec_push(&w->keys, o->known_keys.p[s->first_key + i]))
                snapshot_no_memory(w);
            end_column(w, &s->columns[i], COL_I64);
        }
    }
    if (!by_number)
        snapshot_no_memory(w);
    mem_free(by_number);
}

void snapshot_write_args(struct snapshot_writer *w)
{
    struct args_out o = {.w = w};
    write_sets(&o);
    w->trailer.n_values = (uint32_t)o.value[0].rows;
    w->trailer.n_arg_columns = SNAPSHOT_SET_COLUMNS + SNAPSHOT_VALUE_COLUMNS;
    for (int i = 0; i < SNAPSHOT_SET_COLUMNS; i++)
        end_column(w, &o.set[i], set_types[i]);
    for (int i = 0; i < SNAPSHOT_VALUE_COLUMNS; i++)
        end_column(w, &o.value[i], value_types[i]);
    end_shapes(&o);
    for (int i = 0; i < SNAPSHOT_SET_COLUMNS; i++)
        free_growing(&o.set[i]);
    for (int i = 0; i < SNAPSHOT_VALUE_COLUMNS; i++)
        free_growing(&o.value[i]);
    for (size_t i = 0; i < o.shapes.n; i++) {
        for (uint32_t k = 0; o.shapes.p[i].columns && k < o.shapes.p[i].n_keys; k++)
            free_growing(&o.shapes.p[i].columns[k]);
        mem_free(o.shapes.p[i].columns);
    }
    vec_free(&o.shapes);
    vec_free(&o.known_keys);
    u64map_free(&o.by_hash);
}

/* ---- reading ---- */

static void add(struct snapshot *s, struct arg_list *out, int64_t flat_key, int64_t key, int64_t type, int64_t word)
{
    bool text = type == ARG_STRING || type == ARG_JSON;
    if (type < 0 || type >= ARG_TYPE_COUNT || flat_key < 0 || flat_key > s->n_strings || key < 0 ||
        key > s->n_strings || (text && (word < 0 || word > s->n_strings))) {
        snapshot_note_damage(s, "args");
        return;
    }
    struct arg a = {(strid)flat_key, (strid)key, word, (uint8_t)type};
    if (!vec_push(out, a))
        snapshot_note_damage(s, "args: out of memory");
}

static void generic_values(struct snapshot *s, int64_t first, int64_t n, struct arg_list *out)
{
    int64_t end;
    if (first < 0 || n < 0 || __builtin_add_overflow(first, n, &end) || end > s->trailer->n_values) {
        snapshot_note_damage(s, "args");
        return;
    }
    for (int64_t i = first; i < end; i++) {
        int64_t words[SNAPSHOT_VALUE_COLUMNS];
        for (int c = 0; c < SNAPSHOT_VALUE_COLUMNS; c++)
            words[c] = column_get(&s->value[c], (uint32_t)i);
        add(s, out, words[SNAPSHOT_VALUE_FLAT_KEY], words[SNAPSHOT_VALUE_KEY], words[SNAPSHOT_VALUE_TYPE],
            words[SNAPSHOT_VALUE_WORD]);
    }
}

static void shape_values(struct snapshot *s, int64_t number, int64_t row, struct arg_list *out)
{
    if (number < 1 || number > (int64_t)s->n_shapes || row < 0 || row >= s->shapes[number - 1].n_rows) {
        snapshot_note_damage(s, "args");
        return;
    }
    const struct snapshot_shape *shape = &s->shapes[number - 1];
    uint64_t first = s->trailer->n_table_columns + s->trailer->n_arg_columns + shape->first_key;
    for (uint32_t i = 0; i < shape->n_keys; i++) {
        const struct snapshot_key *k = &s->keys[shape->first_key + i];
        struct column c;
        snapshot_column_of(s, &s->columns[first + i], &c);
        add(s, out, k->flat_key, k->key, k->type, column_get(&c, (uint32_t)row));
    }
}

static void values(void *ctx, uint32_t index, bool with_defaults, struct arg_list *out)
{
    struct snapshot *s = ctx;
    if (with_defaults) {
        int64_t set = column_get(&s->set[SNAPSHOT_SET_DEFAULTS], index);
        if (set < 1 || set > s->trailer->n_all_sets)
            return;
        index = (uint32_t)set - 1;
    }
    int64_t shape = column_get(&s->set[SNAPSHOT_SET_SHAPE], index), row = column_get(&s->set[SNAPSHOT_SET_ROW], index);
    if (shape == SNAPSHOT_GENERIC)
        generic_values(s, row, column_get(&s->set[SNAPSHOT_SET_LEN], index), out);
    else
        shape_values(s, shape, row, out);
}

static bool columns_are_good(struct snapshot *s, uint64_t first, int n, const enum col_type *types, uint32_t rows,
                             struct column *out)
{
    for (int i = 0; i < n; i++) {
        if (first + (uint64_t)i >= s->n_columns ||
            !snapshot_column_is_good(s, &s->columns[first + (uint64_t)i], rows, types[i]))
            return false;
        snapshot_column_of(s, &s->columns[first + (uint64_t)i], &out[i]);
    }
    return true;
}

int snapshot_open_args(struct snapshot *s, const struct snapshot_trailer *t)
{
    s->shapes = snapshot_section_at(s, SNAPSHOT_SHAPES, &s->n_shapes);
    s->keys = snapshot_section_at(s, SNAPSHOT_KEYS, &s->n_keys);
    uint64_t first = t->n_table_columns, of_shapes = first + t->n_arg_columns;
    if (t->n_arg_columns != SNAPSHOT_SET_COLUMNS + SNAPSHOT_VALUE_COLUMNS || t->n_sets > t->n_all_sets ||
        t->n_all_sets > UINT32_MAX - 2 || s->n_columns != of_shapes + s->n_keys ||
        !columns_are_good(s, first, SNAPSHOT_SET_COLUMNS, set_types, t->n_all_sets, s->set) ||
        !columns_are_good(s, first + SNAPSHOT_SET_COLUMNS, SNAPSHOT_VALUE_COLUMNS, value_types, t->n_values, s->value))
        return -MRD_EFORMAT;
    uint64_t key = 0;
    for (uint64_t i = 0; i < s->n_shapes; i++) {
        const struct snapshot_shape *shape = &s->shapes[i];
        if (shape->first_key != key || !shape->n_keys || shape->n_keys > s->n_keys - key)
            return -MRD_EFORMAT;
        for (uint32_t k = 0; k < shape->n_keys; k++)
            if (!snapshot_column_is_good(s, &s->columns[of_shapes + key + k], shape->n_rows, COL_I64))
                return -MRD_EFORMAT;
        key += shape->n_keys;
    }
    return key == s->n_keys ? 0 : -MRD_EFORMAT;
}

void snapshot_use_args(struct snapshot *s, struct args *args)
{
    args->base = (struct args_base){values, s, s->trailer->n_sets};
}
