/* Machines: their rows, their cpus, and the life of the trackers of each. */
#include "importer/core/context.h"

#include <sched.h>

enum {
    MAX_MACHINES = UINT16_MAX, /* as many as stats can tell apart */
    MACHINES_AT_ONCE = 512,    /* these are taken whatever the input's size */
    BYTES_OF_A_MACHINE = 1024, /* the least that each further one brings: ids of six bytes would fill the memory */
};

/* A machine costs some 100 kB, of trackers and rows: so there are at most as many as the input can be about. */
static size_t machines_allowed(const struct importer *im)
{
    uint64_t n = MACHINES_AT_ONCE + (im->input_bytes + im->directory_bytes) / BYTES_OF_A_MACHINE;
    return n < MAX_MACHINES ? (size_t)n : MAX_MACHINES;
}

unsigned importer_threads(const struct importer *im)
{
    enum { USEFUL = 4 };
    cpu_set_t allowed;
    if (im->opt.threads)
        return im->opt.threads;
    int cpus = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return cpus > USEFUL ? USEFUL : cpus > 1 ? (unsigned)cpus : 1;
}

void importer_fail(struct importer *im, int code, const char *fmt, ...)
{
    if (im->error.code)
        return;
    va_list ap;
    va_start(ap, fmt);
    error_vset(&im->error, code, fmt, ap);
    va_end(ap);
}

void machine_set_arch(struct machine_ctx *m, strid arch)
{
    m->arch = arch;
    ROW_SET(m->st, machine, arch, m->id, arch);
}

uint32_t machine_ucpu(struct machine_ctx *m, uint32_t cpu)
{
    uint32_t ucpu = ucpu_of(m->id, cpu);
    uint64_t bit = (uint64_t)1 << (cpu & 63);
    uint64_t *word = &m->cpu_seen[cpu / 64 & (CPUS_PER_MACHINE / 64 - 1)];
    if (!(*word & bit)) {
        *word |= bit;
        if (ucpu < m->st->t[T_cpu].n_rows)
            ROW_SET(m->st, cpu, cpu, ucpu, cpu);
    }
    return ucpu;
}

bool machine_has_cpu(struct machine_ctx *m, uint64_t cpu)
{
    if (cpu < CPUS_PER_MACHINE)
        return true;
    /* one row, of whatever numbers: a stranger chooses them */
    stats_add_idx(&m->st->stats, m->id, STAT_cpu_number_too_large, CPUS_PER_MACHINE, 1);
    return false;
}

bool import_log_has_room(const struct machine_ctx *m, enum stat_key stat)
{
    return m->im->logged[stat] < IMPORT_LOGS_OF_STAT;
}

void import_log(struct machine_ctx *m, enum stat_key stat, int64_t ts, int64_t byte_offset, argset args)
{
    if (stat_defs[stat].type == STAT_INDEXED)
        stats_add_idx(&m->st->stats, m->id, stat, (int32_t)m->im->trace_file, 1);
    else
        stats_add(&m->st->stats, m->id, stat, 1);
    if (!import_log_has_room(m, stat))
        return;
    m->im->logged[stat]++;
    trace_import_logs_insert(m->st,
                             &(struct trace_import_logs_row){.trace_id = m->im->trace_file,
                                                             .ts = ts,
                                                             .byte_offset = byte_offset < 0 ? COL_NULL : byte_offset,
                                                             .stat_key = stat,
                                                             .arg_set_id = args});
}

void import_log_number(struct machine_ctx *m, enum stat_key stat, int64_t ts, int64_t byte_offset, const char *key,
                       uint64_t value)
{
    argset set = ARGSET_NONE;
    if (key && import_log_has_room(m, stat)) {
        struct arg_list list = {0};
        arg_list_uint(&m->st->args, &list, key, value);
        set = args_intern(&m->st->args, list.p, list.n);
        arg_list_free(&list);
    }
    import_log(m, stat, ts, byte_offset, set);
}

void machine_close(struct machine_ctx *m)
{
    if (!m)
        return;
    m->im->parts->close(m);
    mem_free(m);
}

static bool insert_rows(struct machine_ctx *m)
{
    struct storage *st = m->st;
    uint32_t row = machine_insert(st, &(struct machine_row){.raw_id = (int64_t)m->raw_id,
                                                            .num_cpus = COL_NULL,
                                                            .android_sdk_version = COL_NULL,
                                                            .system_ram_bytes = COL_NULL,
                                                            .system_ram_gb = COL_NULL});
    struct cpu_row cpu = {.cpu = COL_NULL, .machine_id = row, .capacity = COL_NULL};
    _Static_assert((int)CPUS_PER_MACHINE == (int)COL_CHUNK_ROWS, "the rows of a machine's cpus are one chunk");
    return cpu_insert_chunk(st, &cpu) && row == m->id;
}

static struct machine_ctx *add_machine(struct importer *im, uint64_t raw_id, uint32_t boot)
{
    if (im->machines.n >= machines_allowed(im))
        return NULL;
    struct machine_ctx *m = mem_zalloc(sizeof *m);
    if (!m) {
        im->failed = true;
        return NULL;
    }
    m->im = im;
    m->st = im->st;
    m->id = (uint32_t)im->machines.n;
    m->raw_id = raw_id;
    m->clock_file = im->input.clock_file;
    m->boot = boot;
    if (!vec_push(&im->machines, m)) {
        mem_free(m);
        im->failed = true;
        return NULL;
    }
    if (!insert_rows(m) || (!boot && !u64map_set(&im->machine_rows, raw_id, m->id)) || !im->parts->open(m)) {
        im->machines.n--;
        if (!boot)
            u64map_del(&im->machine_rows, raw_id);
        machine_close(m);
        im->failed = true;
        return NULL;
    }
    return m;
}

struct machine_ctx *importer_machine(struct importer *im, uint32_t raw_id)
{
    const struct declared_trace *t = &im->input.declared;
    for (size_t i = 0; i < t->n_machines; i++)
        if (t->machines[i].id == raw_id)
            return importer_named_machine(im, t->machines[i].name);
    if (t->n_machines && raw_id)
        importer_fail(im, -MRD_EFORMAT, "perfetto_manifest: machines: trace has a packet from undeclared machine id %u",
                      raw_id);
    else if (t->machine && raw_id)
        importer_fail(im, -MRD_EFORMAT,
                      "perfetto_manifest: machine: '%s' is a multi-machine trace. Replace `machine` with a `machines` "
                      "block that names each machine id",
                      t->path);
    bool first_is_named = im->machines.n && im->machines.p[0]->raw_id > UINT32_MAX;
    if (!raw_id && (im->input.base_machine || first_is_named))
        return im->machines.p[im->input.base_machine];
    if (im->recent_machine && im->recent_machine_id == raw_id)
        return im->recent_machine;
    uint64_t *row = u64map_get(&im->machine_rows, raw_id);
    if (row) {
        im->recent_machine_id = raw_id;
        return im->recent_machine = im->machines.p[*row];
    }
    if (im->failed)
        return NULL;
    if (raw_id != 0 && im->machines.n == 1 && !im->host_seen && im->machines.p[0]->raw_id == 0) {
        /* A trace of one remote machine only: its id is adopted by the machine that is there. */
        if (!u64map_set(&im->machine_rows, raw_id, 0)) {
            im->failed = true;
            return NULL;
        }
        im->machines.p[0]->raw_id = raw_id;
        ROW_SET(im->st, machine, raw_id, 0, raw_id);
        return im->machines.p[0];
    }
    return add_machine(im, raw_id, 0);
}

struct machine_ctx *importer_machine_boot(struct importer *im, struct machine_ctx *m, uint32_t boot)
{
    for (size_t i = 0; i < im->machines.n; i++)
        if (im->machines.p[i]->raw_id == m->raw_id && im->machines.p[i]->boot == boot)
            return im->machines.p[i];
    struct machine_ctx *next = im->failed ? NULL : add_machine(im, m->raw_id, boot);
    if (next) {
        ROW_SET(im->st, machine, name, next->id, ROW_GET(im->st, machine, name, m->id));
        next->keeps_name = m->keeps_name;
    }
    return next;
}

struct machine_ctx *importer_host(struct importer *im)
{
    const uint64_t *row = u64map_get(&im->machine_rows, 0);
    return row ? im->machines.p[*row] : im->failed ? NULL : add_machine(im, 0, 0);
}

static struct machine_ctx *name_machine(struct importer *im, struct machine_ctx *m, strid name)
{
    if (m) {
        ROW_SET(im->st, machine, name, m->id, name);
        m->keeps_name = true;
    }
    return m;
}

struct machine_ctx *importer_first_named_machine(struct importer *im, const char *name)
{
    struct machine_ctx *first = im->machines.p[0];
    if (im->machines.n > 1 || first->raw_id || im->host_seen)
        return importer_named_machine(im, name);
    u64map_del(&im->machine_rows, 0);
    im->recent_machine = NULL;
    first->raw_id = (uint64_t)UINT32_MAX + 1;
    ROW_SET(im->st, machine, raw_id, 0, (int64_t)first->raw_id);
    return name_machine(im, first, import_str(im, name));
}

struct machine_ctx *importer_named_machine(struct importer *im, const char *name)
{
    strid id = import_str(im, name);
    uint64_t next = (uint64_t)UINT32_MAX + 1;
    for (size_t i = 0; i < im->machines.n; i++) {
        struct machine_ctx *m = im->machines.p[i];
        if (m->raw_id > UINT32_MAX && ROW_GET(im->st, machine, name, m->id) == id)
            return m;
        next = m->raw_id >= next ? m->raw_id + 1 : next;
    }
    return name_machine(im, im->failed ? NULL : add_machine(im, next, 0), id);
}
