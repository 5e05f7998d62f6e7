/* Imports CpuInfo packets: processor names, frequencies, capacities and clusters of the cpus. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

struct cpu_message {
    uint32_t first_freq, n_freqs; /* in system_machine.cpu_freqs */
    uint32_t capacity;            /* 0: unknown */
    uint32_t max_freq;
    uint32_t cluster;
};

static void arm_identifier(struct machine_ctx *m, struct slice bytes, struct arg_list *args)
{
    static const char *const names[] = {
        NULL, "arm_cpu_implementer", "arm_cpu_architecture", "arm_cpu_variant", "arm_cpu_part", "arm_cpu_revision"};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id < sizeof names / sizeof *names)
            arg_list_uint(&m->st->args, args, names[f.id], pb_u32(&f));
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

static void add_freq(struct machine_ctx *m, uint32_t ucpu, uint32_t freq, struct cpu_message *cpu)
{
    cpu_freq_insert(m->st, &(struct cpu_freq_row){.ucpu = ucpu, .freq = freq});
    if (!vec_push(&m->system->cpu_freqs, freq))
        m->im->failed = true;
    cpu->n_freqs++;
    if (freq > cpu->max_freq)
        cpu->max_freq = freq;
}

static void add_cpu(struct machine_ctx *m, uint32_t number, struct slice bytes, struct cpu_message *cpu)
{
    uint32_t ucpu = machine_ucpu(m, number);
    struct arg_list args = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint64_t bits = 0;
    *cpu = (struct cpu_message){.first_freq = (uint32_t)m->system->cpu_freqs.n};
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case CPU_INFO_CPU_PROCESSOR:
            ROW_SET(m->st, cpu, processor, ucpu, import_slice(m->im, pb_bytes(&f)));
            break;
        case CPU_INFO_CPU_FREQUENCIES:
            if (f.wire == PB_BYTES) {
                struct pb_cursor packed = pb_sub(&f);
                uint64_t v;
                while (pb_next_packed(&packed, &v))
                    add_freq(m, ucpu, (uint32_t)v, cpu);
            } else {
                add_freq(m, ucpu, pb_u32(&f), cpu);
            }
            break;
        case CPU_INFO_CPU_CAPACITY:
            cpu->capacity = pb_u32(&f);
            ROW_SET(m->st, cpu, capacity, ucpu, cpu->capacity);
            break;
        case CPU_INFO_CPU_ARM_IDENTIFIER:
            arm_identifier(m, pb_bytes(&f), &args);
            break;
        case CPU_INFO_CPU_FEATURES:
            bits = pb_u64(&f);
            break;
        }
    }
    features(m, bits, &args); /* behind what tells the processor apart, wherever they stand */
    argset set = args_intern(&m->st->args, args.p, args.n);
    if (!argset_is_none(set))
        ROW_SET_ARGS(m->st, cpu, arg_set_id, ucpu, set);
    arg_list_free(&args);
}

/* What tells clusters apart: capacity where every cpu has one, else the highest frequency. */
static uint32_t cluster_key(const struct cpu_message *cpu, bool by_capacity)
{
    return by_capacity ? cpu->capacity : cpu->max_freq;
}

void cpu_info_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    VEC(struct cpu_message)
    cpus = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    bool by_capacity = true;
    vec_clear(&m->system->cpu_freqs);
    while (pb_next(&c, &f)) {
        if (f.id != CPU_INFO_CPUS || cpus.n >= CPUS_PER_MACHINE)
            continue;
        struct cpu_message *cpu = vec_add(&cpus);
        if (!cpu) {
            m->im->failed = true;
            break;
        }
        add_cpu(m, (uint32_t)cpus.n - 1, pb_bytes(&f), cpu);
        by_capacity &= cpu->capacity != 0;
    }
    if (!cpus.n)
        stats_add(&m->st->stats, m->id, STAT_cpu_info_empty, 1);
    /* Clusters are numbered by rising key. There are few distinct keys: walk them in order. */
    uint32_t key = 0, cluster = 0;
    bool first = true;
    for (;;) {
        uint32_t next = UINT32_MAX;
        bool any = false;
        for (size_t i = 0; i < cpus.n; i++) {
            uint32_t k = cluster_key(&cpus.p[i], by_capacity);
            if ((first || k > key) && k <= next) {
                next = k;
                any = true;
            }
        }
        if (!any || cluster >= CPUS_PER_MACHINE)
            break;
        for (size_t i = 0; i < cpus.n; i++)
            if (cluster_key(&cpus.p[i], by_capacity) == next)
                ROW_SET(m->st, cpu, cluster_id, machine_ucpu(m, (uint32_t)i), cluster);
        key = next;
        first = false;
        cluster++;
    }
    vec_free(&cpus);
}
