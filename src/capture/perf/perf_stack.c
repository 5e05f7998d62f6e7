/* The call stack of a sample: the kernel's part by name, the user's part by file and address in it. */
#include "capture/perf/perf_sample.h"

#include "capture/perf/perf_attr.h"
#include "wire/fields.h"

/* Return addresses lie behind the call: a step back is in it. */
#if defined(__x86_64__)
enum { PC_STEP = 1, FP_ALIGN = 16 };
#else
enum { PC_STEP = 4, FP_ALIGN = 2 };
#endif

enum { REREAD_MS = 100 }; /* a process's maps are not read more often than this because of unknown addresses */

struct stack {
    struct perf_sampler *s;
    struct perf_process *p;
    uint64_t now_ms;
    size_t n;
};

static void push(struct stack *k, uint32_t frame)
{
    if (k->n < PERF_MAX_FRAMES)
        k->s->frames[k->n++] = frame;
}

static void push_kernel(struct stack *k, uint64_t address)
{
    char name[PERF_KERNEL_NAME_BYTES];
    struct perf_packets *o = &k->s->packets;
    struct perf_mapping kernel = {.path = slice_str("kernel")};
    struct slice function = perf_kernel_name(k->s->shared, address, name);
    uint32_t mapping = perf_intern_mapping(&o->in, &o->w, &kernel);
    push(k, perf_intern_frame(&o->in, &o->w, function, mapping, 0));
}

static uint32_t mapping_of(struct stack *k, struct perf_map *m)
{
    struct perf_packets *o = &k->s->packets;
    if (m->mapping && m->generation == k->s->generation)
        return m->mapping;
    const struct perf_elf *elf = perf_process_elf(&k->s->processes, k->p, m);
    struct perf_mapping x = {.start = m->start,
                             .end = m->end,
                             .offset = m->offset,
                             .path = strpool_view(&k->s->processes.paths, m->path),
                             .load_bias = elf ? elf->load_bias : 0};
    if (elf)
        x.build_id = slice_of(elf->build_id, elf->build_id_len);
    m->mapping = perf_intern_mapping(&o->in, &o->w, &x);
    m->generation = k->s->generation;
    m->load_bias = x.load_bias;
    return m->mapping;
}

static void push_user(struct stack *k, uint64_t pc)
{
    struct perf_packets *o = &k->s->packets;
    struct perf_map *m = perf_process_find(k->p, pc);
    if (!m && k->now_ms - k->p->read_ms >= REREAD_MS && perf_process_read(&k->s->processes, k->p, k->now_ms))
        m = perf_process_find(k->p, pc);
    if (!m) {
        struct perf_mapping none = {0};
        push(k, perf_intern_frame(&o->in, &o->w, slice_of(NULL, 0), perf_intern_mapping(&o->in, &o->w, &none), pc));
        return;
    }
    uint32_t mapping = mapping_of(k, m);
    uint64_t rel_pc = pc - m->start + m->offset + m->load_bias;
    rel_pc -= rel_pc < PC_STEP ? 0 : PC_STEP;
    push(k, perf_intern_frame(&o->in, &o->w, slice_of(NULL, 0), mapping, rel_pc));
}

/* The frame that says why the stack ends. */
static void push_error(struct stack *k, const char *name)
{
    struct perf_packets *o = &k->s->packets;
    struct perf_mapping none = {0};
    uint32_t mapping = perf_intern_mapping(&o->in, &o->w, &none);
    push(k, perf_intern_frame(&o->in, &o->w, slice_str(name), mapping, 0));
}

/* The kernel's part of a chain comes first, behind its marker; the user's follows behind another. */
static void push_chain(struct stack *k, const struct perf_record *r, bool user)
{
    enum perf_chain part = PERF_CHAIN_OTHER;
    for (uint64_t i = 0; i < r->n_chain; i++) {
        uint64_t address = perf_record_u64(r->chain, i);
        enum perf_chain kind = perf_chain_kind(address);
        if (kind != PERF_CHAIN_ADDRESS)
            part = kind;
        else if (part == PERF_CHAIN_KERNEL && k->s->config->kernel_frames)
            push_kernel(k, address);
        else if (part == PERF_CHAIN_USER && user)
            push_user(k, address);
    }
}

static uint64_t register_of(const struct perf_record *r, unsigned number)
{
    uint64_t below = perf_arch_regs.mask & ((UINT64_C(1) << number) - 1);
    return perf_record_u64(r->regs, (uint64_t)__builtin_popcountll(below));
}

/* Follows frame pointers through the copy of the stack. */
static void push_frame_pointers(struct stack *k, const struct perf_record *r)
{
    uint64_t fp = register_of(r, perf_arch_regs.fp), sp = register_of(r, perf_arch_regs.sp),
             pc = register_of(r, perf_arch_regs.pc), base = sp, end = base + r->stack.len;
    while (k->n < PERF_MAX_FRAMES && fp && fp > sp && fp % FP_ALIGN == 0 && fp <= UINT64_MAX - 16 && fp + 16 <= end) {
        push_user(k, pc);
        const uint8_t *at = r->stack.p + (fp - base);
        sp = fp + 16;
        pc = perf_record_u64(at, 1);
        fp = perf_record_u64(at, 0);
    }
}

size_t perf_stack_frames(struct perf_sampler *s, struct perf_process *p, const struct perf_record *r, bool user,
                         uint64_t now_ms, uint32_t *error)
{
    struct stack k = {s, p, now_ms, 0};
    *error = 0;
    push_chain(&k, r, user && !s->layout.stack);
    if (!user || !perf_config_copies_stacks(s->config))
        return k.n;
    bool wide = r->regs && r->abi == PERF_ABI_64; /* stacks of 32 bits have other frames */
    if (wide)
        push_frame_pointers(&k, r);
    if (!wide || s->config->user_frames == PERF_USER_DWARF) {
        /* without unwind tables a stack may end before its outermost frame */
        push_error(&k, "ERROR UNSUPPORTED");
        *error = PROFILING_STACK_UNWIND_ERROR_UNSUPPORTED;
    }
    return k.n;
}
