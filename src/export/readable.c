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

/* What a way gives for one row. */
static int64_t follow(const struct export_source *s, size_t way, int64_t from)
{
    if (from == COL_NULL || from < 0)
        return COL_NULL;
    if (ways[way].table == T_COUNT)
        return from / CPUS_PER_MACHINE;
    const struct table *t = &s->st->t[ways[way].table];
    return from < t->n_rows ? table_get(t, ways[way].table_column, (uint32_t)from) : COL_NULL;
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
            for (uint32_t k = 0; k < n; k++)
                if (!begun[ways[i].key] || out[k] == COL_NULL)
                    out[k] = follow(s, i, from[k]);
        }
        begun[ways[i].key] = true;
    }
    int64_t *machine = s->keys[KEY_MACHINE];
    for (uint32_t k = 0; machine && one_machine(s) && k < n; k++)
        if (!begun[KEY_MACHINE] || machine[k] == COL_NULL)
            machine[k] = 0;
}

void readable_words(const struct export_source *s, const struct source_column *c, uint32_t n, int64_t *out)
{
    const int64_t *key = s->keys[c->key];
    const uint32_t rows = c->table->n_rows;
    if (c->key == KEY_MACHINE) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = key[i] >= 0 && key[i] < s->n_machines ? (int64_t)s->machine_names[key[i]] : 0;
        return;
    }
    const struct column *column = &c->table->columns[c->column];
    const int64_t none = column_null(c->type);
    int64_t last = COL_NULL, word = none; /* rows of one thread or track often follow each other */
    for (uint32_t i = 0; i < n; i++) {
        if (key[i] != last) {
            last = key[i];
            word = last >= 0 && last < rows ? column_get(column, (uint32_t)last) : none;
        }
        out[i] = word;
    }
}
