/* Imports CpuInfo packets: processor names, frequencies, capacities and clusters of the cpus. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

#include <stdlib.h>

/* What a packet says of a cpu; cpus are numbered by their place. */
struct cpu_message {
    struct slice bytes;
    uint32_t number, capacity, max_freq, key, cluster;
    bool has_capacity, has_freqs;
};

static void arm_identifier(struct machine_ctx *m, struct slice bytes, struct arg_list *args)
{
    static const char *const names[] = {
        [CPU_INFO_ARM_CPU_IDENTIFIER_IMPLEMENTER] = "arm_cpu_implementer",
        [CPU_INFO_ARM_CPU_IDENTIFIER_ARCHITECTURE] = "arm_cpu_architecture",
        [CPU_INFO_ARM_CPU_IDENTIFIER_VARIANT] = "arm_cpu_variant",
        [CPU_INFO_ARM_CPU_IDENTIFIER_PART] = "arm_cpu_part",
        [CPU_INFO_ARM_CPU_IDENTIFIER_REVISION] = "arm_cpu_revision",
    };
    struct pb_field f;
    for (uint32_t id = 1; id < sizeof names / sizeof *names; id++)
        arg_list_uint(&m->st->args, args, names[id], pb_find(bytes, id, &f) ? pb_u32(&f) : 0);
}

/* Bits of CpuInfo.Cpu.features, by number. */
static const char *const feature_keys[] = {"cpu_features.mte", "cpu_features.mte3"};

static void features(struct machine_ctx *m, uint64_t bits, struct arg_list *args)
{
    size_t known = sizeof feature_keys / sizeof *feature_keys;
    for (size_t i = 0; i < known; i++)
        if (bits >> i & 1)
            arg_list_bool(&m->st->args, args, feature_keys[i], true);
    if (bits)
        arg_list_uint(&m->st->args, args, "cpu_features.raw_bitmap", bits);
    if (bits >> known)
        stats_add(&m->st->stats, m->id, STAT_cpu_info_unknown_cpu_features, 1);
}

/* Calls `each` for the frequencies of a cpu, packed or not. */
static void each_freq(struct slice bytes, void (*each)(void *ctx, uint32_t freq), void *ctx)
{
    struct pb_numbers numbers = pb_numbers(bytes, CPU_INFO_CPU_FREQUENCIES);
    for (uint64_t v; pb_next_number(&numbers, &v);)
        each(ctx, (uint32_t)v);
}

static void note_freq(void *ctx, uint32_t freq)
{
    struct cpu_message *cpu = ctx;
    cpu->has_freqs = true;
    if (freq > cpu->max_freq)
        cpu->max_freq = freq;
}

static struct cpu_message read_cpu(uint32_t number, struct slice bytes)
{
    struct cpu_message cpu = {.bytes = bytes, .number = number};
    struct pb_field f;
    cpu.has_capacity = pb_find(bytes, CPU_INFO_CPU_CAPACITY, &f);
    cpu.capacity = cpu.has_capacity ? pb_u32(&f) : 0;
    each_freq(bytes, note_freq, &cpu);
    return cpu;
}

struct freq_rows {
    struct storage *st;
    uint32_t ucpu;
};

static void add_freq(void *ctx, uint32_t freq)
{
    struct freq_rows *rows = ctx;
    cpu_freq_insert(rows->st, &(struct cpu_freq_row){.ucpu = rows->ucpu, .freq = freq});
}

static void add_cpu(struct machine_ctx *m, const struct cpu_message *cpu)
{
    uint32_t ucpu = machine_ucpu(m, cpu->number);
    struct arg_list args = {0};
    struct pb_field f;
    ROW_SET(m->st, cpu, cluster_id, ucpu, cpu->cluster);
    if (pb_find(cpu->bytes, CPU_INFO_CPU_PROCESSOR, &f))
        ROW_SET(m->st, cpu, processor, ucpu, import_slice(m->im, pb_bytes(&f)));
    if (cpu->has_capacity)
        ROW_SET(m->st, cpu, capacity, ucpu, cpu->capacity);
    each_freq(cpu->bytes, add_freq, &(struct freq_rows){m->st, ucpu});
    if (pb_find(cpu->bytes, CPU_INFO_CPU_ARM_IDENTIFIER, &f))
        arm_identifier(m, pb_bytes(&f), &args);
    features(m, pb_find(cpu->bytes, CPU_INFO_CPU_FEATURES, &f) ? pb_u64(&f) : 0, &args);
    argset set = args_intern(&m->st->args, args.p, args.n);
    if (!argset_is_none(set))
        ROW_SET_ARGS(m->st, cpu, arg_set_id, ucpu, set);
    arg_list_free(&args);
}

static int by_number(const void *a, const void *b)
{
    const struct cpu_message *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_key(const void *a, const void *b)
{
    const struct cpu_message *x = a, *y = b;
    int order = (x->key > y->key) - (x->key < y->key);
    return order ? order : by_number(a, b);
}

/* Clusters are cpus of one capacity where each tells its own, else of one highest frequency where each has some, else
 * all of them; they are numbered by rising value. The rows of frequencies come in the order of the capacities. */
static void add_cpus(struct machine_ctx *m, struct cpu_message *cpus, size_t n)
{
    bool capacities = true, freqs = true;
    for (size_t i = 0; i < n; i++) {
        capacities &= cpus[i].has_capacity;
        freqs &= cpus[i].has_freqs;
    }
    for (size_t i = 0; i < n; i++)
        cpus[i].key = capacities ? cpus[i].capacity : freqs ? cpus[i].max_freq : 0;
    qsort(cpus, n, sizeof *cpus, by_key);
    for (size_t i = 1; i < n; i++)
        cpus[i].cluster = cpus[i - 1].cluster + (cpus[i].key > cpus[i - 1].key);
    if (!capacities)
        qsort(cpus, n, sizeof *cpus, by_number);
    for (size_t i = 0; i < n; i++)
        add_cpu(m, &cpus[i]);
}

void cpu_info_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    VEC(struct cpu_message)
    cpus = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != CPU_INFO_CPUS)
            continue;
        if (!machine_has_cpu(m, cpus.n))
            break;
        struct cpu_message cpu = read_cpu((uint32_t)cpus.n, pb_bytes(&f));
        if (!vec_push(&cpus, cpu))
            m->im->failed = true;
    }
    if (cpus.n)
        add_cpus(m, cpus.p, cpus.n);
    else
        stats_add(&m->st->stats, m->id, STAT_cpu_info_empty, 1);
    vec_free(&cpus);
}
