/* Counts functions over the samples of a trace, without importing it: only what linux.perf writes is looked at. */
#include "capture/record/profile_top.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/strpool.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/common/perf_elf.h"
#include "capture/record/elf_names.h"
#include "demangle/demangle.h"
#include "wire/fields.h"
#include "wire/packet_file.h"
#include "wire/pb_cursor.h"

#include <stdlib.h>
#include <unistd.h>

enum { SHOWN_NAME_BYTES = 400, READABLE_BYTES = 4096 };
enum { STATE_CLEARED = 1 }; /* TracePacket.sequence_flags */

/* What interned messages are about; the numbers of strings are shared. */
enum kind { KIND_STRING, KIND_MAPPING, KIND_FRAME, KIND_STACK };

struct mapping {
    strid path, build_id;
    bool opened;
    struct mapped_file file;
    struct elf_names names;
};

struct frame {
    strid name;
    uint64_t mapping, rel_pc; /* mapping: its key */
    strid function;           /* as it is shown; 0: not made yet */
};

struct function {
    strid text;
    uint64_t self, total;
    uint64_t last; /* the sample that counted it last: recursion counts once */
};

struct top {
    struct u64map index;       /* hash of sequence, kind and iid → number, of which the meaning depends on the kind */
    struct u64map of_events;   /* sequences whose samples are hits of a tracepoint, not time */
    struct u64map generations; /* sequence → how often its state was cleared */
    struct strpool strings;
    VEC(struct mapping)
    mappings;
    VEC(struct frame)
    frames;
    VEC(uint64_t)
    stacks;                /* of each: number of frames, then their keys, the outermost first */
    struct u64map by_text; /* text → 1 + index into functions */
    VEC(struct function)
    functions;
    struct profile_counts counts;
    uint64_t sequence; /* and generation, of the packet */
    bool failed;
};

static uint64_t key_of(const struct top *t, enum kind kind, uint64_t iid)
{
    return hash_combine(hash_combine(t->sequence, kind), iid);
}

static void define(struct top *t, enum kind kind, uint64_t iid, uint64_t value)
{
    t->failed |= !u64map_set(&t->index, key_of(t, kind, iid), value + 1);
}

/* False: nothing was interned under that number. */
static bool look_up(const struct top *t, enum kind kind, uint64_t iid, uint64_t *value)
{
    const uint64_t *v = u64map_get(&t->index, key_of(t, kind, iid));
    *value = v ? *v - 1 : 0;
    return v != NULL;
}

static uint64_t number(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_u64(&f) : 0;
}

/* ---- what samples refer to ---- */

static void read_string(struct top *t, struct slice m)
{
    struct pb_field f;
    struct slice text = pb_find(m, INTERNED_STRING_STR, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
    define(t, KIND_STRING, number(m, INTERNED_STRING_IID),
           strpool_intern(&t->strings, text.p ? text.p : (const uint8_t *)"", text.len));
}

static void read_mapping(struct top *t, struct slice m)
{
    char path[4200] = "";
    size_t n = 0;
    uint64_t part, build_id;
    struct pb_numbers parts = pb_numbers(m, MAPPING_PATH_STRING_IDS);
    for (uint64_t iid; pb_next_number(&parts, &iid);) {
        struct slice s = look_up(t, KIND_STRING, iid, &part) ? strpool_view(&t->strings, (strid)part) : slice_of("", 0);
        if (n + s.len + 2 > sizeof path)
            break;
        path[n++] = '/';
        memcpy(path + n, s.p, s.len);
        n += s.len;
    }
    struct mapping x = {.path = strpool_intern(&t->strings, path, n)};
    if (look_up(t, KIND_STRING, number(m, MAPPING_BUILD_ID), &build_id))
        x.build_id = (strid)build_id;
    define(t, KIND_MAPPING, number(m, MAPPING_IID), t->mappings.n);
    t->failed |= !vec_push(&t->mappings, x);
}

static void read_frame(struct top *t, struct slice m)
{
    uint64_t name;
    struct frame x = {.mapping = number(m, FRAME_MAPPING_ID), .rel_pc = number(m, FRAME_REL_PC)};
    if (look_up(t, KIND_STRING, number(m, FRAME_FUNCTION_NAME_ID), &name))
        x.name = (strid)name;
    if (!look_up(t, KIND_MAPPING, x.mapping, &x.mapping))
        x.mapping = UINT64_MAX;
    define(t, KIND_FRAME, number(m, FRAME_IID), t->frames.n);
    t->failed |= !vec_push(&t->frames, x);
}

static void read_stack(struct top *t, struct slice m)
{
    size_t at = t->stacks.n;
    uint64_t frame, n = 0;
    struct pb_numbers ids = pb_numbers(m, CALLSTACK_FRAME_IDS);
    define(t, KIND_STACK, number(m, CALLSTACK_IID), at);
    t->failed |= !vec_push(&t->stacks, 0);
    for (uint64_t iid; !t->failed && pb_next_number(&ids, &iid);) {
        if (!look_up(t, KIND_FRAME, iid, &frame))
            continue;
        t->failed |= !vec_push(&t->stacks, frame);
        n++;
    }
    if (at < t->stacks.n)
        t->stacks.p[at] = n;
}

static void read_interned(struct top *t, struct slice m)
{
    static const struct {
        uint32_t field;
        void (*read)(struct top *t, struct slice m);
    } lists[] = {{INTERNED_DATA_BUILD_IDS, read_string},      {INTERNED_DATA_MAPPING_PATHS, read_string},
                 {INTERNED_DATA_FUNCTION_NAMES, read_string}, {INTERNED_DATA_MAPPINGS, read_mapping},
                 {INTERNED_DATA_FRAMES, read_frame},          {INTERNED_DATA_CALLSTACKS, read_stack}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct pb_cursor c = pb_cursor(m);
        struct pb_field f;
        while (pb_next(&c, &f))
            if (f.id == lists[i].field)
                lists[i].read(t, pb_bytes(&f));
    }
}

/* ---- names ---- */

static bool same_build(const struct top *t, const struct mapping *m, int fd)
{
    struct perf_elf e;
    struct slice want = strpool_view(&t->strings, m->build_id);
    return perf_elf_read(&e, fd) && want.len && slice_eq(slice_of(e.build_id, e.build_id_len), want);
}

/* Opens the mapping's file when it is still the one that ran. Whoever ran it may have put anything in its place. */
static void open_names(struct top *t, struct mapping *m)
{
    struct error err = {0};
    char same[40];
    const char *path = strpool_cstr(&t->strings, m->path);
    m->opened = true;
    int fd = path && *path == '/' ? file_open_regular(path) : -1;
    if (fd < 0)
        return;
    snprintf(same, sizeof same, "/proc/self/fd/%d", fd);
    if (same_build(t, m, fd) && mapped_file_open(&m->file, same, &err) == 0)
        t->failed |= !elf_names_read(&m->names, m->file.bytes);
    close(fd);
}

/* "name\tfile" of a frame. */
static strid function_of(struct top *t, struct frame *x)
{
    char readable[READABLE_BYTES];
    struct mapping *m = x->mapping < t->mappings.n ? &t->mappings.p[x->mapping] : NULL;
    struct slice name = strpool_view(&t->strings, x->name);
    if (x->function)
        return x->function;
    if (m && !m->opened && !name.len)
        open_names(t, m);
    if (m && !name.len)
        name = elf_names_find(&m->names, x->rel_pc);
    const char *path = m && m->path ? strpool_cstr(&t->strings, m->path) : "", *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    size_t n = demangle(name, false, readable, sizeof readable);
    if (n)
        name = slice_of(readable, n);
    if (name.len)
        x->function =
            strpool_printf(&t->strings, "%.*s\t%s", (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES),
                           (const char *)name.p, file);
    else
        x->function = strpool_printf(&t->strings, "(no name)\t%s", file);
    return x->function;
}

static void count(struct top *t, strid text, bool self)
{
    uint64_t *slot = text ? u64map_put(&t->by_text, text, NULL) : NULL;
    if (!slot) {
        t->failed = true;
        return;
    }
    if (!*slot) {
        if (!vec_push(&t->functions, (struct function){.text = text})) {
            t->failed = true;
            return;
        }
        *slot = t->functions.n;
    }
    struct function *f = &t->functions.p[*slot - 1];
    f->self += self;
    f->total += f->last != t->counts.samples;
    f->last = t->counts.samples;
}

/* ---- samples ---- */

static void read_sample(struct top *t, struct slice m)
{
    struct pb_field f;
    uint64_t at;
    if (pb_find(m, PERF_SAMPLE_KERNEL_RECORDS_LOST, &f)) {
        t->counts.lost += pb_u64(&f);
        return;
    }
    if (pb_find(m, PERF_SAMPLE_SAMPLE_SKIPPED_REASON, &f)) {
        t->counts.skipped += pb_u64(&f) != PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_NOT_IN_SCOPE;
        return;
    }
    if (!pb_find(m, PERF_SAMPLE_CALLSTACK_IID, &f))
        return;
    if (!look_up(t, KIND_STACK, pb_u64(&f), &at) || at >= t->stacks.n)
        return;
    if (pb_find(m, PERF_SAMPLE_TID, &f) && pb_u64(&f) == 0) {
        t->counts.idle++;
        return;
    }
    t->counts.samples++;
    uint64_t n = t->stacks.p[at];
    for (uint64_t i = n; i-- > 0;)
        count(t, function_of(t, &t->frames.p[t->stacks.p[at + 1 + i]]), i == n - 1);
}

/* The packet begins a sequence of hits of a tracepoint. */
static bool is_of_events(struct slice m)
{
    static const uint32_t path[] = {TRACE_PACKET_TRACE_PACKET_DEFAULTS, TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS,
                                    PERF_SAMPLE_DEFAULTS_TIMEBASE, PERF_EVENTS_TIMEBASE_TRACEPOINT};
    struct pb_field f;
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        if (!pb_find(m, path[i], &f))
            return false;
        m = pb_bytes(&f);
    }
    return true;
}

static int read_packet(void *ctx, struct slice field)
{
    struct top *t = ctx;
    struct pb_cursor c = pb_cursor(field);
    struct pb_field packet, f;
    if (!pb_next(&c, &packet) || packet.wire != PB_BYTES)
        return 0;
    struct slice m = pb_bytes(&packet);
    bool cleared = number(m, TRACE_PACKET_SEQUENCE_FLAGS) & STATE_CLEARED;
    uint64_t sequence = number(m, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID);
    uint64_t *generation = u64map_put(&t->generations, sequence, NULL);
    if (!generation)
        return -MRD_ENOMEM;
    *generation += cleared;
    t->sequence = hash_combine(sequence, *generation);
    if (is_of_events(m))
        t->failed |= !u64map_set(&t->of_events, sequence, 1);
    if (u64map_get(&t->of_events, sequence))
        return t->failed ? -MRD_ENOMEM : 0;
    if (pb_find(m, TRACE_PACKET_INTERNED_DATA, &f))
        read_interned(t, pb_bytes(&f));
    if (pb_find(m, TRACE_PACKET_PERF_SAMPLE, &f))
        read_sample(t, pb_bytes(&f));
    return t->failed || t->strings.failed ? -MRD_ENOMEM : 0;
}

/* ---- the table ---- */

static int by_self(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    return x->self != y->self     ? (x->self > y->self ? -1 : 1)
           : x->total != y->total ? (x->total > y->total ? -1 : 1)
                                  : (x->text > y->text) - (x->text < y->text);
}

static void print(struct top *t, unsigned rows, bool callers, FILE *to)
{
    double all = t->counts.samples ? (double)t->counts.samples : 1;
    if (t->functions.n)
        qsort(t->functions.p, t->functions.n, sizeof *t->functions.p, by_self);
    if (t->functions.n)
        fprintf(to, callers ? "   self   total  function\n" : "   self  function\n");
    for (size_t i = 0; i < t->functions.n && i < rows && (callers || t->functions.p[i].self); i++) {
        const struct function *f = &t->functions.p[i];
        const char *text = strpool_cstr(&t->strings, f->text), *tab = strrchr(text, '\t');
        fprintf(to, " %5.1f%%", 100 * (double)f->self / all);
        if (callers)
            fprintf(to, "  %5.1f%%", 100 * (double)f->total / all);
        fputs("  ", to);
        for (const char *c = text; c < tab; c++) /* names of files and functions are anybody's */
            fputc((unsigned char)*c < ' ' || *c == 127 ? '?' : *c, to);
        fputs(tab[1] ? "  [" : "", to);
        for (const char *c = tab + 1; *c; c++)
            fputc((unsigned char)*c < ' ' || *c == 127 ? '?' : *c, to);
        fputs(tab[1] ? "]\n" : "\n", to);
    }
}

static void top_free(struct top *t)
{
    for (size_t i = 0; i < t->mappings.n; i++) {
        elf_names_free(&t->mappings.p[i].names);
        mapped_file_close(&t->mappings.p[i].file);
    }
    u64map_free(&t->index);
    u64map_free(&t->generations);
    u64map_free(&t->of_events);
    u64map_free(&t->by_text);
    strpool_free(&t->strings);
    vec_free(&t->mappings);
    vec_free(&t->frames);
    vec_free(&t->stacks);
    vec_free(&t->functions);
}

int profile_top(const char *path, unsigned rows, bool callers, FILE *to, struct profile_counts *counts,
                struct error *err)
{
    struct top t = {0};
    struct packet_file file = {0};
    struct packet_counts packets;
    int rc = packet_file_open(&file, path, err);
    if (rc)
        return rc;
    rc = packet_file_walk(&file, read_packet, &t, &packets, err);
    if (rc == -MRD_ENOMEM)
        error_set(err, rc, "%s: out of memory", path);
    if (!rc) {
        print(&t, rows, callers, to);
        *counts = t.counts;
    }
    packet_file_close(&file);
    top_free(&t);
    return rc;
}
