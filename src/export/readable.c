/* Columns that people can read, found by the ids of a row: machine, thread, process, track, CPU, args. */
#include "export/source_private.h"
#include "storage/ucpu.h"

#include <stdio.h>

/* How a key is found: in a column of the row, or in the row of another table that a key found before names. Of several
 * ways the first one that gives a value counts. */
static const struct {
    enum export_key key;
    const char *column;
    enum export_key from; /* KEY_NONE: by `column` */
    enum table_id table;
    uint32_t table_column;
} ways[] = {
    {KEY_TRACK, "track_id", KEY_NONE, 0, 0},
    {KEY_UTID, "utid", KEY_NONE, 0, 0},
    {KEY_UTID, NULL, KEY_TRACK, T_track, track_c_utid},
    {KEY_UPID, "upid", KEY_NONE, 0, 0},
    {KEY_UPID, NULL, KEY_UTID, T_thread, thread_c_upid},
    {KEY_UPID, NULL, KEY_TRACK, T_track, track_c_upid},
    {KEY_UCPU, "ucpu", KEY_NONE, 0, 0},
    {KEY_MACHINE, "machine_id", KEY_NONE, 0, 0},
    {KEY_MACHINE, NULL, KEY_UCPU, T_COUNT, 0}, /* the number itself tells */
    {KEY_MACHINE, NULL, KEY_UTID, T_thread, thread_c_machine_id},
    {KEY_MACHINE, NULL, KEY_UPID, T_process, process_c_machine_id},
    {KEY_MACHINE, NULL, KEY_TRACK, T_track, track_c_machine_id},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static const struct {
    const char *name;
    enum column_how how;
    enum export_key key;
    enum table_id table;
    uint32_t column;
    uint8_t type;
} readables[] = {
    {"machine", FROM_KEY, KEY_MACHINE, T_machine, machine_c_name, COL_STR},
    {"cpu", FROM_CPU, KEY_UCPU, T_cpu, cpu_c_cpu, COL_I64},
    {"thread_name", FROM_KEY, KEY_UTID, T_thread, thread_c_name, COL_STR},
    {"tid", FROM_KEY, KEY_UTID, T_thread, thread_c_tid, COL_I64},
    {"process_name", FROM_KEY, KEY_UPID, T_process, process_c_name, COL_STR},
    {"pid", FROM_KEY, KEY_UPID, T_process, process_c_pid, COL_I64},
    {"track_name", FROM_KEY, KEY_TRACK, T_track, track_c_name, COL_STR},
};

/* The column of integers by that name, or -1. */
static int find_column(const struct export_source *s, const char *name)
{
    const struct table_def *d = s->table->def;
    for (uint32_t i = 0; i < d->n_columns; i++)
        if (strcmp(d->columns[i].name, name) == 0)
            return d->columns[i].type == COL_STR || d->columns[i].type == COL_F64 ? -1 : (int)i;
    return -1;
}

static bool way_is_open(const struct export_source *s, size_t i)
{
    return ways[i].from == KEY_NONE ? find_column(s, ways[i].column) >= 0 : s->keys[ways[i].from] != NULL;
}

/* A trace of one machine: every row is of it. */
static bool one_machine(const struct export_source *s)
{
    return s->n_machines == 1;
}

static int plan_keys(struct export_source *s)
{
    for (size_t i = 0; i < N_WAYS; i++) {
        bool wanted = way_is_open(s, i) || (ways[i].key == KEY_MACHINE && one_machine(s));
        if (!wanted || s->keys[ways[i].key])
            continue;
        s->keys[ways[i].key] = mem_alloc(s->block_rows * sizeof **s->keys);
        if (!s->keys[ways[i].key])
            return -MRD_ENOMEM;
    }
    return 0;
}

/* Machines without a name get one of their number. */
static int name_machines(struct export_source *s)
{
    const struct table *m = &s->st->t[T_machine];
    s->n_machines = m->n_rows;
    s->machine_names = mem_alloc((m->n_rows + 1) * sizeof *s->machine_names);
    if (!s->machine_names)
        return -MRD_ENOMEM;
    for (uint32_t i = 0; i < m->n_rows; i++) {
        s->machine_names[i] = (strid)table_get(m, machine_c_name, i);
        if (!s->machine_names[i])
            s->machine_names[i] = strpool_printf(&s->st->strings, "machine %u", i);
        if (!s->machine_names[i])
            return -MRD_ENOMEM;
    }
    return 0;
}

/* "args" of "arg_set_id", "source_args" of "source_arg_set_id"; false for other names. */
static bool args_name(const char *column, char *out, size_t size)
{
    static const char end[] = "arg_set_id";
    size_t n = strlen(column), tail = sizeof end - 1;
    if (n < tail || strcmp(column + n - tail, end) != 0 || (n > tail && column[n - tail - 1] != '_'))
        return false;
    snprintf(out, size, "%.*sargs", (int)(n - tail), column);
    return true;
}

static bool plan_args(struct export_source *s)
{
    const struct table_def *d = s->table->def;
    char name[128];
    bool ok = true;
    for (uint32_t i = 0; i < d->n_columns && ok; i++) {
        if (d->columns[i].type == COL_STR || d->columns[i].type == COL_F64 ||
            !args_name(d->columns[i].name, name, sizeof name) || source_has(s, name))
            continue;
        ok = source_add(s, name, EXPORT_TEXT, true, true,
                        (struct source_column){.how = FROM_ARGS, .column = i, .type = COL_STR});
    }
    return ok;
}

int readable_plan(struct export_source *s, struct error *err)
{
    bool ok = name_machines(s) == 0 && plan_keys(s) == 0;
    for (size_t i = 0; ok && i < sizeof readables / sizeof *readables; i++) {
        if (!s->keys[readables[i].key] || source_has(s, readables[i].name))
            continue;
        ok = source_add(s, readables[i].name, readables[i].type == COL_STR ? EXPORT_TEXT : EXPORT_INT64, true, false,
                        (struct source_column){.how = readables[i].how,
                                               .key = readables[i].key,
                                               .table = &s->st->t[readables[i].table],
                                               .column = readables[i].column,
                                               .type = readables[i].type});
    }
    return ok && plan_args(s) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

/* ---- rows of other tables ---- */

enum { MAX_FLAT_ROWS = 1 << 16 }; /* of a table that is unpacked: of a larger one each row is looked up by itself */

/* The words of a column, unpacked once for all rows that name them, or NULL. */
static const int64_t *flatten(struct export_source *s, const struct table *t, uint32_t column)
{
    const struct column *c = &t->columns[column];
    for (size_t i = 0; i < s->flat.n; i++)
        if (s->flat.p[i].column == c)
            return s->flat.p[i].words;
    int64_t *words = t->n_rows <= MAX_FLAT_ROWS && t->n_rows <= 4 * s->table->n_rows
                         ? mem_alloc((t->n_rows + 1) * sizeof *words)
                         : NULL;
    if (words)
        source_unpack(t, column, 0, t->n_rows, words);
    if (!vec_push(&s->flat, (struct flat_column){c, words})) {
        mem_free(words);
        return NULL;
    }
    return words;
}

void readable_free(struct export_source *s)
{
    for (size_t i = 0; i < s->flat.n; i++)
        mem_free(s->flat.p[i].words);
    vec_free(&s->flat);
    mem_free(s->machine_names);
}

/* The words of a column in the rows that `keys` names, `none` where it names none. */
static void look_up(struct export_source *s, const struct table *t, uint32_t column, const int64_t *keys, uint32_t n,
                    int64_t none, int64_t *out)
{
    const int64_t *flat = flatten(s, t, column);
    const uint64_t rows = t->n_rows;
    for (uint32_t i = 0; i < n; i++) { /* a key that is NULL is a large one */
        if ((uint64_t)keys[i] >= rows)
            out[i] = none;
        else if (i && keys[i] == keys[i - 1])
            out[i] = out[i - 1];
        else
            out[i] = flat ? flat[keys[i]] : table_get(t, column, (uint32_t)keys[i]);
    }
}

/* What a way gives for n rows. */
static void follow(struct export_source *s, size_t way, const int64_t *from, uint32_t n, int64_t *out)
{
    if (ways[way].table != T_COUNT) {
        look_up(s, &s->st->t[ways[way].table], ways[way].table_column, from, n, COL_NULL, out);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = from[i] < 0 ? COL_NULL : from[i] / CPUS_PER_MACHINE;
}

static bool any_null(const int64_t *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (words[i] == COL_NULL)
            return true;
    return false;
}

void readable_find(struct export_source *s, uint32_t first, uint32_t n)
{
    bool begun[KEY_COUNT] = {false};
    for (size_t i = 0; i < N_WAYS; i++) {
        int64_t *out = s->keys[ways[i].key];
        if (!out || !way_is_open(s, i))
            continue;
        if (ways[i].from == KEY_NONE) {
            source_unpack(s->table, (uint32_t)find_column(s, ways[i].column), first, n, out);
        } else {
            const int64_t *from = s->keys[ways[i].from];
            if (begun[ways[i].key] && !any_null(out, n))
                continue;
            follow(s, i, from, n, begun[ways[i].key] ? s->words : out);
            for (uint32_t k = 0; begun[ways[i].key] && k < n; k++)
                out[k] = out[k] == COL_NULL ? s->words[k] : out[k];
        }
        begun[ways[i].key] = true;
    }
    int64_t *machine = s->keys[KEY_MACHINE];
    for (uint32_t k = 0; machine && one_machine(s) && k < n; k++)
        if (!begun[KEY_MACHINE] || machine[k] == COL_NULL)
            machine[k] = 0;
}

void readable_words(struct export_source *s, const struct source_column *c, uint32_t n, int64_t *out)
{
    const int64_t *key = s->keys[c->key];
    if (c->key != KEY_MACHINE) {
        look_up(s, c->table, c->column, key, n, column_null(c->type), out);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = key[i] >= 0 && key[i] < s->n_machines ? (int64_t)s->machine_names[key[i]] : 0;
}
