/* Makes rows of a fleet of the tables of a trace. */
#include "fleet/made_rows.h"

#include "storage/stats_rows.h"

void made_rows_free(struct made_rows *m)
{
    table_free(&m->table);
    vec_free(&m->ids);
}

static int finish(struct made_rows *m, int rc)
{
    table_finalize(&m->table);
    return rc < 0 || m->table.failed ? -MRD_ENOMEM : 0;
}

/* ---- what was lost ---- */

struct summing {
    struct made_losses *out;
    int64_t machine;
};

static void add_up(int64_t *sum, int64_t value)
{
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = value > 0 ? INT64_MAX : INT64_MIN;
}

static int sum_row(void *ctx, const struct stats_line *row)
{
    const struct summing *s = ctx;
    const uint8_t severity = stat_defs[row->key].severity;
    if (s->machine >= 0 && row->machine != s->machine)
        return 0;
    if (severity == STAT_DATA_LOSS)
        add_up(&s->out->lost, row->value);
    else if (severity == STAT_ERROR)
        add_up(&s->out->errors, row->value);
    return 0;
}

int made_losses(struct made_losses *out, const struct storage *st, int64_t machine)
{
    struct summing s = {out, machine};
    *out = (struct made_losses){0};
    return stats_rows_each(st, sum_row, &s);
}

/* ---- machines ---- */

/* COLUMN(name of fleet_machines, type): the columns in between are those of `machine`. */
#define MACHINE_COLUMNS(C)                                                                                             \
    C(sysname, COL_STR)                                                                                                \
    C(release, COL_STR)                                                                                                \
    C(version, COL_STR)                                                                                                \
    C(arch, COL_STR)                                                                                                   \
    C(num_cpus, COL_I64)                                                                                               \
    C(system_ram_bytes, COL_I64)                                                                                       \
    C(android_build_fingerprint, COL_STR)

static const struct column_def machine_columns[] = {
    {"machine_id", COL_I64, COL_NULLABLE, "Row of machine."},
#define C(name, type) {#name, type, COL_NULLABLE, "As machine has it."},
    MACHINE_COLUMNS(C)
#undef C
        {"lost", COL_I64, COL_NULLABLE, "Sum of its stats of severity data_loss."},
    {"errors", COL_I64, COL_NULLABLE, "Sum of its stats of severity error."}};

enum { N_MACHINE_COLUMNS = sizeof machine_columns / sizeof *machine_columns };

const struct table_def made_machines_def = {"fleet_machines", machine_columns, N_MACHINE_COLUMNS,
                                            "Machines of a trace."};

int made_machines(struct made_rows *m, struct storage *st)
{
    int rc = table_init(&m->table, &made_machines_def);
    for (uint32_t row = 0; rc == 0 && row < st->t[T_machine].n_rows; row++) {
        struct made_losses l;
        rc = made_losses(&l, st, row);
        const int64_t words[N_MACHINE_COLUMNS] = {row,
#define C(name, type) ROW_GET(st, machine, name, row),
                                                  MACHINE_COLUMNS(C)
#undef C
                                                      l.lost,
                                                  l.errors};
        if (rc == 0 && table_append(&m->table, words) == UINT32_MAX)
            rc = -MRD_ENOMEM;
    }
    return finish(m, rc);
}

/* ---- rows of tables ---- */

int made_cpus(struct made_rows *m, struct storage *st)
{
    int rc = table_init(&m->table, &table_defs[T_cpu]);
    for (uint32_t row = 0; rc == 0 && row < st->t[T_cpu].n_rows; row++) {
        int64_t words[cpu_n_columns];
        if (ROW_GET(st, cpu, cpu, row) == COL_NULL) /* the table has a place for each CPU that a machine could have */
            continue;
        for (uint32_t i = 0; i < cpu_n_columns; i++)
            words[i] = table_get(&st->t[T_cpu], i, row);
        if (table_append(&m->table, words) == UINT32_MAX || !vec_push(&m->ids, row))
            rc = -MRD_ENOMEM;
    }
    return finish(m, rc);
}

struct putting {
    struct made_rows *m;
    struct storage *st;
};

static int put_row(void *ctx, const struct stats_line *row)
{
    const struct putting *p = ctx;
    if (row->value == 0)
        return 0;
    int rc = stats_rows_put(p->st, &p->m->table, row);
    return rc < 0 || vec_push(&p->m->ids, row->number) ? rc : -MRD_ENOMEM;
}

int made_stats(struct made_rows *m, struct storage *st)
{
    struct putting p = {m, st};
    int rc = table_init(&m->table, &table_defs[T_stats]);
    return finish(m, rc < 0 ? rc : stats_rows_each(st, put_row, &p));
}
