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
    bool late;   /* a file is still being read */
    bool device; /* the code is a device's: nobody unwinds it, and nothing is wrong */
};

/* ---- where user code is ---- */

/* The map of an address. Maps that came since /proc was read are looked for there. */
static struct perf_map *map_of(struct stack *k, uint64_t pc)
{
    struct perf_map *m = perf_process_find(k->p, pc);
    if (!m && k->now_ms - k->p->read_ms >= REREAD_MS && perf_process_read(&k->s->processes, k->p, k->now_ms))
        m = perf_process_find(k->p, pc);
    return m ? m : perf_process_find_in_parent(&k->s->processes, k->p, pc, k->now_ms);
}

/* An address inside of the instruction that a frame is in. */
static uint64_t code_of(const struct unwind_frame *f)
{
    return f->exact || f->pc < PC_STEP ? f->pc : f->pc - PC_STEP;
}

/* The map of a frame: that of its call, when the call is the last instruction of the map. */
static struct perf_map *map_of_frame(struct stack *k, const struct unwind_frame *f)
{
    struct perf_map *m = map_of(k, f->pc);
    return m || f->exact || f->pc < PC_STEP ? m : perf_process_find(k->p, f->pc - PC_STEP);
}

/* The file behind a map, or NULL when there is none. */
static struct perf_file *file_of(struct stack *k, struct perf_map *m)
{
    struct perf_files *files = &k->s->shared->files;
    const char *path = strpool_cstr(&k->s->processes.paths, m->path);
    if (path[0] != '/' || !m->inode)
        return NULL;
    bool tables = k->s->config->user_frames == PERF_USER_DWARF;
    struct perf_file *x = m->file && m->file_epoch == files->epoch ? &files->list.p[m->file - 1] : NULL;
    if (!x || (!x->loading && (!x->known || (tables && !x->tables_tried)))) {
        struct perf_file_map wanted = {.pid = k->p->pid,
                                       .start = m->start,
                                       .end = m->end,
                                       .inode = m->inode,
                                       .major = m->major,
                                       .minor = m->minor,
                                       .generation = m->inode_generation,
                                       .path = path};
        int32_t place = perf_files_find(files, &wanted, tables, k->now_ms);
        if (place < 0)
            return NULL;
        m->file = (uint32_t)place + 1;
        m->file_epoch = files->epoch;
        x = &files->list.p[place];
    }
    x->used_ms = k->now_ms;
    k->late |= perf_file_is_late(x, k->now_ms);
    return x;
}

static bool is_device(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/ashmem/", 12) != 0 &&
           strncmp(path, "/dev/shm/", 9) != 0 && strncmp(path, "/dev/zero", 9) != 0;
}

static bool find_code(void *ctx, uint64_t pc, struct unwind_place *place)
{
    struct stack *k = ctx;
    struct perf_map *m = map_of(k, pc);
    *place = (struct unwind_place){0};
    if (!m)
        return false;
    const char *path = strpool_cstr(&k->s->processes.paths, m->path);
    if (is_device(path)) {
        k->device = true;
        return false;
    }
    const struct perf_file *x = file_of(k, m);
    const struct unwind_file *tables = x                             ? x->tables
                                       : strcmp(path, "[vdso]") == 0 ? perf_files_vdso(&k->s->shared->files)
                                                                     : NULL;
    *place = unwind_place_of(tables, m->start, m->offset);
    return true;
}

/* The names of code that the process has made itself; NULL: `m` is not of that. */
static const struct perf_jit *jit_of(struct stack *k, struct perf_map *m, uint64_t pc)
{
    const char *path = strpool_cstr(&k->s->processes.paths, m->path);
    if (m->code == PERF_CODE_UNKNOWN)
        m->code = perf_jit_is_code(path) ? PERF_CODE_MADE : PERF_CODE_OF_FILE;
    if (m->code != PERF_CODE_MADE)
        return NULL;
    bool dump = perf_jit_is_dump(path);
    if (!k->p->began)
        k->p->began = perf_process_began(k->p->pid);
    const struct perf_jit *j =
        perf_files_jit(&k->s->shared->files, k->p->pid, k->p->began, dump ? path : NULL, m->inode, pc, k->now_ms);
    k->late |= j && perf_jit_is_late(j, k->now_ms);
    return j && !j->loading ? j : NULL;
}

/* ---- the user's part ---- */

static void collect(struct stack *k, uint64_t pc, bool exact)
{
    struct perf_user_stack *u = &k->s->user;
    if (u->n < PERF_MAX_FRAMES)
        u->frames[u->n++] = (struct unwind_frame){pc, exact};
}

static void collect_chain(struct stack *k, const struct perf_record *r)
{
    bool user = false;
    for (uint64_t i = 0; i < r->n_chain; i++) {
        uint64_t address = perf_record_u64(r->chain, i);
        enum perf_chain kind = perf_chain_kind(address);
        if (kind != PERF_CHAIN_ADDRESS)
            user = kind == PERF_CHAIN_USER;
        else if (user)
            collect(k, address, false);
    }
}

static uint64_t register_of(const struct perf_record *r, unsigned number)
{
    uint64_t below = perf_arch_regs.mask & ((UINT64_C(1) << number) - 1);
    return perf_record_u64(r->regs, (uint64_t)__builtin_popcountll(below));
}

/* Follows frame pointers through the copy of the stack. */
static void collect_frame_pointers(struct stack *k, const struct perf_record *r)
{
    uint64_t fp = register_of(r, perf_arch_regs.fp), sp = register_of(r, perf_arch_regs.sp),
             pc = register_of(r, perf_arch_regs.pc), base = sp, end = base + r->stack.len;
    while (k->s->user.n < PERF_MAX_FRAMES && fp && fp > sp && fp % FP_ALIGN == 0 && fp <= UINT64_MAX - 16 &&
           fp + 16 <= end) {
        collect(k, pc, false);
        const uint8_t *at = r->stack.p + (fp - base);
        sp = fp + 16;
        pc = perf_record_u64(at, 1);
        fp = perf_record_u64(at, 0);
    }
}

/* Why the stack ends before it is whole; UNWIND_WHOLE: it does not. */
static void set_end(struct perf_user_stack *u, enum unwind_end end)
{
    static const char *const names[UNWIND_ENDS] = {
        [UNWIND_NO_MAP] = "ERROR INVALID_MAP",      [UNWIND_NO_TABLES] = "ERROR UNWIND_INFO",
        [UNWIND_BAD_TABLES] = "ERROR UNWIND_INFO",  [UNWIND_OUTSIDE] = "ERROR MEMORY_INVALID",
        [UNWIND_REPEATS] = "ERROR REPEATED_FRAME",  [UNWIND_TOO_DEEP] = "ERROR MAX_FRAME_EXCEEDED",
        [UNWIND_UNSUPPORTED] = "ERROR UNSUPPORTED",
    };
    u->error = names[end];
    u->error_code = unwind_end_error(end);
}

static void collect_by_tables(struct stack *k, const struct perf_record *r)
{
    struct unwind_frame frames[UNWIND_MAX_FRAMES];
    struct unwind_task t = {.arch = UNWIND_THIS_ARCH, .find = find_code, .ctx = k, .stack = r->stack};
    struct unwind_cache *cache = perf_files_cache(&k->s->shared->files);
    enum unwind_end end = UNWIND_UNSUPPORTED;
    unwind_set_registers(&t, perf_arch_regs.mask, r->regs);
    size_t n = cache ? unwind_stack(cache, &t, frames, UNWIND_MAX_FRAMES, &end) : 0;
    for (size_t i = 0; i < n; i++)
        collect(k, frames[i].pc, frames[i].exact);
    if (!k->device)
        set_end(&k->s->user, end);
}

/* Files of frames whose mapping has no number yet are asked for, and names of code that has no file. */
static void ask_for_files(struct stack *k)
{
    for (size_t i = 0; i < k->s->user.n; i++) {
        struct perf_map *m = map_of_frame(k, &k->s->user.frames[i]);
        if (m && !(m->mapping && m->generation == k->s->generation))
            file_of(k, m);
        if (m)
            jit_of(k, m, code_of(&k->s->user.frames[i]));
    }
}

bool perf_stack_collect(struct perf_sampler *s, struct perf_process *p, const struct perf_record *r, uint64_t now_ms)
{
    struct stack k = {.s = s, .p = p, .now_ms = now_ms};
    s->user.n = 0;
    set_end(&s->user, UNWIND_WHOLE);
    if (!perf_config_copies_stacks(s->config))
        collect_chain(&k, r);
    else if (!r->regs || r->abi != PERF_ABI_64) /* stacks of 32 bits have other frames */
        set_end(&s->user, UNWIND_UNSUPPORTED);
    else if (s->config->user_frames == PERF_USER_DWARF)
        collect_by_tables(&k, r);
    else
        collect_frame_pointers(&k, r);
    ask_for_files(&k);
    return !k.late;
}

/* ---- numbers of frames ---- */

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
    uint32_t mapping = perf_intern_mapping(&o->in, &kernel);
    push(k, perf_intern_frame(&o->in, function, mapping, 0, 0));
}

/* The kernel's part of a chain comes first, behind its marker. */
static void push_kernel_chain(struct stack *k, const struct perf_record *r)
{
    bool kernel = false;
    for (uint64_t i = 0; i < r->n_chain && k->s->config->kernel_frames; i++) {
        uint64_t address = perf_record_u64(r->chain, i);
        enum perf_chain kind = perf_chain_kind(address);
        if (kind != PERF_CHAIN_ADDRESS)
            kernel = kind == PERF_CHAIN_KERNEL;
        else if (kernel)
            push_kernel(k, address);
    }
}

static uint32_t mapping_of(struct stack *k, struct perf_map *m)
{
    struct perf_packets *o = &k->s->packets;
    if (m->mapping && m->generation == k->s->generation)
        return m->mapping;
    const struct perf_file *file = file_of(k, m);
    const struct perf_elf *elf = file && file->known ? &file->elf : NULL;
    struct perf_mapping x = {.start = m->start,
                             .end = m->end,
                             .offset = m->offset,
                             .path = strpool_view(&k->s->processes.paths, m->path),
                             .load_bias = elf ? elf->load_bias : 0};
    if (elf)
        x.build_id = slice_of(elf->build_id, elf->build_id_len);
    m->mapping = perf_intern_mapping(&o->in, &x);
    m->generation = k->s->generation;
    m->load_bias = x.load_bias;
    return m->mapping;
}

static void push_user(struct stack *k, const struct unwind_frame *f)
{
    struct perf_packets *o = &k->s->packets;
    struct perf_map *m = map_of_frame(k, f);
    struct perf_mapping none = {0};
    uint32_t mapping = m ? mapping_of(k, m) : perf_intern_mapping(&o->in, &none);
    uint64_t rel_pc = m ? f->pc - m->start + m->offset + m->load_bias : f->pc;
    if (m && !f->exact)
        rel_pc -= rel_pc < PC_STEP ? 0 : PC_STEP;
    const struct perf_jit *jit = m ? jit_of(k, m, code_of(f)) : NULL;
    struct slice name = jit ? perf_jit_name(jit, code_of(f)) : slice_of(NULL, 0);
    push(k, perf_intern_frame(&o->in, name, mapping, rel_pc, name.len ? FRAME_KIND_JIT : 0));
}

/* The frame that says why the stack ends. */
static void push_error(struct stack *k, const char *name)
{
    struct perf_packets *o = &k->s->packets;
    struct perf_mapping none = {0};
    uint32_t mapping = perf_intern_mapping(&o->in, &none);
    push(k, perf_intern_frame(&o->in, slice_str(name), mapping, 0, 0));
}

size_t perf_stack_frames(struct perf_sampler *s, struct perf_process *p, const struct perf_record *r, bool user,
                         uint64_t now_ms)
{
    struct stack k = {.s = s, .p = p, .now_ms = now_ms};
    push_kernel_chain(&k, r);
    for (size_t i = 0; user && i < s->user.n; i++)
        push_user(&k, &s->user.frames[i]);
    if (user && s->user.error)
        push_error(&k, s->user.error);
    return k.n;
}
