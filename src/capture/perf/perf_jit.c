/* Reads the lines of /tmp/perf-PID.map and the records of jitdump files, within bounds, and finds names in them. */
#include "capture/perf/perf_jit.h"

#include "base/alloc.h"
#include "base/bisect.h"

#include <stdlib.h>

/* jitdump (tools/perf/Documentation/jitdump-specification.txt): little endian where we run. */
enum { DUMP_MAGIC = 0x4a695444, DUMP_HEAD = 40, RECORD_HEAD = 16, LOAD_BYTES = 40, MOVE_BYTES = 48 };
enum { RECORD_LOAD = 0, RECORD_MOVE = 1 };

enum { LINE_MAX_BYTES = 4096, LOOK_BACK = 16 }; /* LOOK_BACK: functions that may lie over the one before */

static void add_named(struct perf_jit *j, uint64_t start, uint64_t size, uint32_t name)
{
    struct perf_jit_function f = {start, size, name, ++j->last_order};
    if (!size || size > UINT64_MAX - start)
        return;
    if (j->functions.n >= PERF_JIT_FUNCTIONS || !vec_push(&j->functions, f))
        j->full = true;
}

/* Copies a name; false: there is no room. */
static bool add_name(struct perf_jit *j, const uint8_t *p, size_t n, uint32_t *name)
{
    if (n > PERF_JIT_NAME_BYTES)
        n = PERF_JIT_NAME_BYTES;
    if (j->names.n + n + 1 > PERF_JIT_BYTES || !vec_reserve(&j->names, j->names.n + n + 1)) {
        j->full = true;
        return false;
    }
    *name = (uint32_t)j->names.n;
    memcpy(j->names.p + j->names.n, p, n);
    j->names.p[j->names.n + n] = 0;
    j->names.n += n + 1;
    return true;
}

/* ---- /tmp/perf-PID.map ---- */

/* A number in hex, with or without 0x. */
static bool hex(const uint8_t **at, const uint8_t *end, uint64_t *v)
{
    const uint8_t *p = *at;
    unsigned digits = 0;
    while (p < end && *p == ' ')
        p++;
    if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
        p += 2;
    for (*v = 0; p < end; p++, digits++) {
        uint8_t c = *p | 0x20;
        unsigned d = c >= '0' && c <= '9' ? c - (unsigned)'0' : c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10 : 16;
        if (d == 16 || digits == 16)
            break;
        *v = *v << 4 | d;
    }
    *at = p;
    return digits > 0 && p < end && *p == ' ';
}

/* START SIZE NAME */
static void parse_line(struct perf_jit *j, const uint8_t *p, const uint8_t *end)
{
    uint64_t start, size;
    uint32_t name;
    if (!hex(&p, end, &start) || !hex(&p, end, &size))
        return;
    while (p < end && *p == ' ')
        p++;
    if (p < end && end[-1] == '\r')
        end--;
    if (p < end && add_name(j, p, (size_t)(end - p), &name))
        add_named(j, start, size, name);
}

size_t perf_jit_parse_map(struct perf_jit *j, struct slice text)
{
    const uint8_t *p = text.p, *end = text.p + text.len, *nl;
    while (p < end && !j->full && (nl = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        if (nl - p <= LINE_MAX_BYTES)
            parse_line(j, p, nl);
        p = nl + 1;
    }
    return (size_t)(p - text.p);
}

/* ---- jitdump ---- */

static uint64_t u64_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* pid, tid, vma, address, size, index, name, code */
static void parse_load(struct perf_jit *j, const uint8_t *p, size_t n)
{
    uint32_t name;
    if (n <= LOAD_BYTES)
        return;
    const uint8_t *text = p + LOAD_BYTES, *nul = memchr(text, 0, n - LOAD_BYTES);
    if (!nul || !add_name(j, text, (size_t)(nul - text), &name))
        return;
    add_named(j, u64_at(p + 16), u64_at(p + 24), name);
    j->full |= !u64map_set(&j->index, u64_at(p + 32), (uint64_t)name + 1);
}

/* pid, tid, vma, old address, new address, size, index */
static void parse_move(struct perf_jit *j, const uint8_t *p, size_t n)
{
    const uint64_t *name = n >= MOVE_BYTES ? u64map_get(&j->index, u64_at(p + 40)) : NULL;
    if (name)
        add_named(j, u64_at(p + 24), u64_at(p + 32), (uint32_t)(*name - 1));
}

size_t perf_jit_parse_dump(struct perf_jit *j, struct slice bytes, bool at_begin)
{
    const uint8_t *p = bytes.p, *end = bytes.p + bytes.len;
    if (at_begin) {
        uint32_t head = bytes.len >= DUMP_HEAD ? u32_at(p + 8) : 0;
        if (head < DUMP_HEAD || head > bytes.len || u32_at(p) != DUMP_MAGIC)
            return 0;
        p += head;
    }
    while ((size_t)(end - p) >= RECORD_HEAD && !j->full) {
        uint32_t kind = u32_at(p), n = u32_at(p + 4);
        if (n < RECORD_HEAD || n > (size_t)(end - p))
            break; /* it is still being written, or damaged: nothing behind it can be read */
        if (kind == RECORD_LOAD)
            parse_load(j, p + RECORD_HEAD, n - RECORD_HEAD);
        else if (kind == RECORD_MOVE)
            parse_move(j, p + RECORD_HEAD, n - RECORD_HEAD);
        p += n;
    }
    return (size_t)(p - bytes.p);
}

/* ---- finding ---- */

static int by_start(const void *a, const void *b)
{
    const struct perf_jit_function *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
                                : (x->order > y->order) - (x->order < y->order);
}

void perf_jit_sort(struct perf_jit *j)
{
    if (j->functions.n)
        qsort(j->functions.p, j->functions.n, sizeof *j->functions.p, by_start);
}

struct slice perf_jit_name(const struct perf_jit *j, uint64_t address)
{
    size_t at = j->functions.n;
    BISECT(at, mid, j->functions.p[mid].start <= address);
    for (size_t i = at; i > 0 && at - i < LOOK_BACK; i--) {
        const struct perf_jit_function *f = &j->functions.p[i - 1];
        if (address - f->start < f->size)
            return slice_str(j->names.p + f->name);
    }
    return slice_of(NULL, 0);
}

bool perf_jit_is_dump(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t digits = strncmp(name, "jit-", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    return digits && strncmp(name + 4 + digits, ".dump", 5) == 0;
}

bool perf_jit_is_code(const char *path)
{
    static const char *const memory[] = {"/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV",
                                         "[anon",   "[heap]",    "[stack"};
    if (!*path)
        return true;
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (strncmp(path, memory[i], strlen(memory[i])) == 0)
            return true;
    return perf_jit_is_dump(path);
}

size_t perf_jit_memory(const struct perf_jit *j)
{
    return j->names.cap + j->functions.cap * sizeof *j->functions.p + j->index.capacity * 17;
}

void perf_jit_free(struct perf_jit *j)
{
    vec_free(&j->functions);
    vec_free(&j->names);
    u64map_free(&j->index);
    mem_free(j->dump_path);
    j->dump_path = NULL;
}
