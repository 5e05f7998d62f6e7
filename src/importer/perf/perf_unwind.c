/* Unwinds the stacks of samples. */
#include "importer/perf/perf_unwind.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/hex.h"
#include "wire/fields.h"

#include <unistd.h>

enum { ABI_64 = 2, MAX_BUILD_ID = 64, MAX_MEMORY = 512 << 20 /* of the tables of all files */ };

/* A file of code. */
struct code {
    strid path, build_id; /* build_id: hexadecimal, "": not known */
    struct perf_inode inode;
    struct unwind_file *file; /* NULL: it cannot be had */
    bool tried;
};

struct perf_unwinder {
    enum unwind_arch arch;
    struct unwind_cache *cache;
    VEC(struct code)
    codes;
    struct u64map by_name;    /* hash of path, build id and inode → place in `codes` */
    struct u64map by_mapping; /* row of stack_profile_mapping → place in `codes` */
    size_t memory;
    uint32_t pid; /* of the sample */
    bool missing; /* its stack leads to a file that cannot be had, at `missing_pc` */
    uint64_t missing_pc;
    struct unwind_task task;
    struct unwind_frame frames[UNWIND_MAX_FRAMES];
};

static bool arch_of(const struct perf_import *p, enum unwind_arch *arch)
{
    static const struct {
        const char *name;
        enum unwind_arch arch;
    } archs[] = {{"x86_64", UNWIND_X86_64}, {"aarch64", UNWIND_AARCH64}};
    struct slice name = perf_feature_text(&p->file, PERF_FEATURE_ARCH);
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (slice_eq_str(name, archs[i].name)) {
            *arch = archs[i].arch;
            return true;
        }
    return false;
}

void perf_unwind_open(struct perf_import *p)
{
    enum unwind_arch arch;
    bool copies = false;
    for (size_t i = 0; i < p->file.attrs.n; i++)
        copies |=
            (p->file.attrs.p[i].sample_type & PERF_STACK_USER) && (p->file.attrs.p[i].sample_type & PERF_REGS_USER);
    if (!p->im->opt.open_code || p->file.big || !copies || !arch_of(p, &arch))
        return;
    struct perf_unwinder *u = mem_zalloc(sizeof *u);
    struct unwind_cache *cache = u ? unwind_cache_new() : NULL;
    if (!cache) {
        mem_free(u);
        p->im->failed = true;
        return;
    }
    u->arch = arch;
    u->cache = cache;
    p->unwinder = u;
}

/* ---- files ---- */

void perf_unwind_map(struct perf_import *p, uint32_t mapping, struct perf_inode inode)
{
    struct perf_unwinder *u = p->unwinder;
    if (!u || mapping == UINT32_MAX)
        return;
    struct code code = {.path = ROW_GET(p->im->st, stack_profile_mapping, name, mapping),
                        .build_id = ROW_GET(p->im->st, stack_profile_mapping, build_id, mapping),
                        .inode = inode};
    uint64_t key = hash_combine(hash_u64((uint64_t)code.path << 32 | code.build_id),
                                hash_combine(inode.number, (uint64_t)inode.major << 32 | inode.minor));
    bool added;
    uint64_t *at = u64map_put(&u->by_name, key, &added);
    if (at && added) {
        *at = u->codes.n;
        if (!vec_push(&u->codes, code))
            at = NULL;
    }
    if (!at || !u64map_set(&u->by_mapping, mapping, *at))
        p->im->failed = true;
}

/* The bytes of a build id; 0: there is none. */
static size_t build_id_bytes(struct slice text, uint8_t bytes[MAX_BUILD_ID])
{
    return text.len / 2 <= MAX_BUILD_ID && hex_bytes(text, bytes) ? text.len / 2 : 0;
}

static void read_file(struct perf_import *p, struct code *code)
{
    struct perf_unwinder *u = p->unwinder;
    struct strpool *strings = &p->im->st->strings;
    struct error err = {0};
    uint8_t id[MAX_BUILD_ID];
    code->tried = true;
    struct code_name name = {.path = strpool_cstr(strings, code->path),
                             .build_id = id,
                             .build_id_len = build_id_bytes(strpool_view(strings, code->build_id), id),
                             .inode = code->inode.number,
                             .major = code->inode.major,
                             .minor = code->inode.minor};
    size_t room = MAX_MEMORY - u->memory;
    int fd = name.path[0] == '/' ? p->im->opt.open_code(p->im->opt.open_code_ctx, &name) : -1;
    if (fd < 0)
        return;
    if (unwind_file_read(&code->file, fd, room < UNWIND_FILE_BYTES ? room : UNWIND_FILE_BYTES, &err))
        code->file = NULL;
    else
        u->memory += unwind_file_memory(code->file);
    close(fd);
}

/* Where the code at an address is. Code of a file that cannot be had ends the stack: a guess by frame pointers could
 * lead anywhere. */
static bool find_code(void *ctx, uint64_t pc, struct unwind_place *place)
{
    struct perf_import *p = ctx;
    struct perf_unwinder *u = p->unwinder;
    const struct perf_space *space = perf_space_of(&p->spaces, u->pid);
    const struct perf_map *map = space ? perf_space_find(space, pc) : NULL;
    const uint64_t *at = map ? u64map_get(&u->by_mapping, map->mapping) : NULL;
    if (!at)
        return false;
    struct code *code = &u->codes.p[*at];
    struct slice path = strpool_view(&p->im->st->strings, code->path);
    if (!path.len || path.p[0] != '/' || slice_starts(path, "//anon")) { /* code that a program has made */
        *place = (struct unwind_place){0};
        return true;
    }
    if (!code->tried)
        read_file(p, code);
    if (!code->file && !u->missing) {
        u->missing = true;
        u->missing_pc = pc;
    }
    if (code->file)
        *place = unwind_place_of(code->file, (uint64_t)ROW_GET(p->im->st, stack_profile_mapping, start, map->mapping),
                                 (uint64_t)ROW_GET(p->im->st, stack_profile_mapping, exact_offset, map->mapping));
    return code->file != NULL;
}

/* ---- stacks ---- */

size_t perf_unwind(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                   const struct unwind_frame **frames, uint32_t *error)
{
    struct perf_unwinder *u = p->unwinder;
    enum unwind_end end;
    if (!u || !s->stack.len || !s->regs.len || s->regs_abi != ABI_64)
        return 0;
    u->pid = s->where.pid;
    u->missing = false;
    u->task = (struct unwind_task){.arch = u->arch, .stack = s->stack, .find = find_code, .ctx = p};
    unwind_set_registers(&u->task, a->regs_user, s->regs.p);
    size_t n = unwind_stack(u->cache, &u->task, u->frames, UNWIND_MAX_FRAMES, &end);
    *frames = u->frames;
    *error = u->missing ? PROFILING_STACK_UNWIND_ERROR_INVALID_ELF : unwind_end_error(end);
    for (size_t i = 0; u->missing && i < n; i++)
        if (unwind_frame_code(&u->task, &u->frames[i]) == u->missing_pc)
            n = i + 1; /* what comes behind it was guessed */
    return n;
}

uint64_t perf_unwind_code(const struct perf_import *p, const struct unwind_frame *frame)
{
    return unwind_frame_code(&p->unwinder->task, frame);
}

void perf_unwind_close(struct perf_import *p)
{
    struct perf_unwinder *u = p->unwinder;
    p->unwinder = NULL;
    if (!u)
        return;
    unwind_cache_free(u->cache);
    for (size_t i = 0; i < u->codes.n; i++)
        unwind_file_free(u->codes.p[i].file);
    vec_free(&u->codes);
    u64map_free(&u->by_name);
    u64map_free(&u->by_mapping);
    mem_free(u);
}
