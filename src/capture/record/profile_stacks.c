/* Reads interned stacks, and adds up what their functions have. */
#include "capture/record/profile_stacks.h"

#include "base/hash.h"
#include "capture/common/perf_elf.h"
#include "demangle/demangle.h"
#include "wire/fields.h"
#include "wire/packet_file.h"
#include "wire/pb_cursor.h"

#include <unistd.h>

enum { SHOWN_NAME_BYTES = 400, READABLE_BYTES = 4096 };
enum { STATE_CLEARED = 1 }; /* TracePacket.sequence_flags */

/* What interned messages are about; the numbers of strings are shared. */
enum kind { KIND_STRING, KIND_MAPPING, KIND_FRAME, KIND_STACK, KINDS };
_Static_assert((int)KINDS == PROFILE_KINDS, "each kind has a map");

static uint64_t key_of(const struct profile_stacks *t, uint64_t iid)
{
    return hash_keyed(hash_secret(), t->sequence, iid);
}

static void define(struct profile_stacks *t, enum kind kind, uint64_t iid, uint64_t value)
{
    t->failed |= !u64map_set(&t->index[kind], key_of(t, iid), value + 1);
}

/* False: nothing was interned under that number. */
static bool look_up(const struct profile_stacks *t, enum kind kind, uint64_t iid, uint64_t *value)
{
    const uint64_t *v = u64map_get(&t->index[kind], key_of(t, iid));
    *value = v ? *v - 1 : 0;
    return v != NULL;
}

uint64_t profile_number(struct slice message, uint32_t id)
{
    struct pb_field f;
    return pb_find(message, id, &f) ? pb_u64(&f) : 0;
}

/* ---- what samples refer to ---- */

static void read_string(struct profile_stacks *t, struct slice m)
{
    struct pb_field f;
    struct slice text = pb_find(m, INTERNED_STRING_STR, &f) ? pb_bytes(&f) : slice_of(NULL, 0);
    define(t, KIND_STRING, profile_number(m, INTERNED_STRING_IID),
           strpool_intern(&t->strings, text.p ? text.p : (const uint8_t *)"", text.len));
}

static void read_mapping(struct profile_stacks *t, struct slice m)
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
    struct profile_mapping x = {.path = strpool_intern(&t->strings, path, n)};
    if (look_up(t, KIND_STRING, profile_number(m, MAPPING_BUILD_ID), &build_id))
        x.build_id = (strid)build_id;
    define(t, KIND_MAPPING, profile_number(m, MAPPING_IID), t->mappings.n);
    t->failed |= !vec_push(&t->mappings, x);
}

static void read_frame(struct profile_stacks *t, struct slice m)
{
    uint64_t name;
    struct profile_frame x = {.mapping = profile_number(m, FRAME_MAPPING_ID),
                              .rel_pc = profile_number(m, FRAME_REL_PC)};
    if (look_up(t, KIND_STRING, profile_number(m, FRAME_FUNCTION_NAME_ID), &name))
        x.name = (strid)name;
    if (!look_up(t, KIND_MAPPING, x.mapping, &x.mapping))
        x.mapping = UINT64_MAX;
    define(t, KIND_FRAME, profile_number(m, FRAME_IID), t->frames.n);
    t->failed |= !vec_push(&t->frames, x);
}

static void read_stack(struct profile_stacks *t, struct slice m)
{
    size_t at = t->stacks.n;
    uint64_t frame, n = 0;
    struct pb_numbers ids = pb_numbers(m, CALLSTACK_FRAME_IDS);
    define(t, KIND_STACK, profile_number(m, CALLSTACK_IID), at);
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

static void read_interned(struct profile_stacks *t, struct slice m)
{
    static const struct {
        uint32_t field;
        void (*read)(struct profile_stacks *t, struct slice m);
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

static bool same_build(const struct profile_stacks *t, const struct profile_mapping *m, int fd)
{
    struct perf_elf e;
    struct slice want = strpool_view(&t->strings, m->build_id);
    return perf_elf_read(&e, fd) && want.len && slice_eq(slice_of(e.build_id, e.build_id_len), want);
}

/* Opens the mapping's file when it is still the one that ran. Whoever ran it may have put anything in its place. */
static void open_names(struct profile_stacks *t, struct profile_mapping *m)
{
    struct error err = {0};
    char same[40];
    const char *path = strpool_cstr(&t->strings, m->path);
    m->opened = true;
    int fd = *path == '/' ? file_open_regular(path) : -1;
    if (fd < 0)
        return;
    snprintf(same, sizeof same, "/proc/self/fd/%d", fd);
    if (same_build(t, m, fd) && mapped_file_open(&m->file, same, &err) == 0)
        t->failed |= !elf_names_read(&m->names, m->file.bytes);
    close(fd);
}

/* "name\tfile" of a frame. */
static strid function_of(struct profile_stacks *t, struct profile_frame *x)
{
    char readable[READABLE_BYTES];
    struct profile_mapping *m = x->mapping < t->mappings.n ? &t->mappings.p[x->mapping] : NULL;
    struct slice name = strpool_view(&t->strings, x->name);
    if (x->function)
        return x->function;
    if (m && !m->opened && !name.len)
        open_names(t, m);
    if (m && !name.len)
        name = elf_names_find(&m->names, x->rel_pc);
    const char *path = m ? strpool_cstr(&t->strings, m->path) : "", *slash = strrchr(path, '/');
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

/* ---- counting ---- */

static struct profile_function *function_at(struct profile_stacks *t, strid text)
{
    uint64_t *slot = text ? u64map_put(&t->by_text, text, NULL) : NULL;
    if (slot && !*slot && vec_push(&t->functions, (struct profile_function){.text = text}))
        *slot = t->functions.n;
    if (slot && *slot)
        return &t->functions.p[*slot - 1];
    t->failed = true;
    return NULL;
}

strid profile_stacks_function(struct profile_stacks *t, uint64_t at, uint64_t depth)
{
    uint64_t n = t->stacks.p[at];
    return depth < n ? function_of(t, &t->frames.p[t->stacks.p[at + n - depth]]) : 0;
}

void profile_stacks_count(struct profile_stacks *t, uint64_t at, uint64_t skip, const uint64_t weights[PROFILE_WEIGHTS],
                          uint64_t samples)
{
    strid text;
    t->counted++;
    for (uint64_t depth = skip; (text = profile_stacks_function(t, at, depth)) != 0; depth++) {
        struct profile_function *f = function_at(t, text);
        if (!f)
            return;
        for (unsigned i = 0; i < PROFILE_WEIGHTS; i++) {
            f->self[i] += depth == skip ? weights[i] : 0;
            f->total[i] += f->last != t->counted ? weights[i] : 0;
        }
        f->samples += depth == skip ? samples : 0;
        f->last = t->counted;
    }
}

bool profile_stacks_find(const struct profile_stacks *t, uint64_t iid, uint64_t *at)
{
    return look_up(t, KIND_STACK, iid, at) && *at < t->stacks.n;
}

/* ---- packets ---- */

int profile_stacks_read(const char *path, int (*each)(void *ctx, struct slice field), void *ctx, struct error *err)
{
    struct packet_file file = {0};
    struct packet_counts packets;
    int rc = packet_file_open(&file, path, err);
    if (!rc)
        rc = packet_file_walk(&file, each, ctx, &packets, err);
    if (rc == -MRD_ENOMEM)
        error_set(err, rc, "%s: out of memory", path);
    packet_file_close(&file);
    return rc;
}

bool profile_stacks_packet(struct profile_stacks *t, struct slice field, struct slice *message)
{
    struct pb_cursor c = pb_cursor(field);
    struct pb_field packet;
    if (!pb_next(&c, &packet) || packet.wire != PB_BYTES)
        return false;
    *message = pb_bytes(&packet);
    uint64_t sequence = profile_number(*message, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID);
    uint64_t *generation = u64map_put(&t->generations, sequence, NULL);
    t->failed |= !generation;
    if (generation)
        *generation += profile_number(*message, TRACE_PACKET_SEQUENCE_FLAGS) & STATE_CLEARED;
    t->sequence = hash_combine(sequence, generation ? *generation : 0);
    return !t->failed;
}

bool profile_stacks_take_interned(struct profile_stacks *t, struct slice message)
{
    struct pb_field f;
    if (pb_find(message, TRACE_PACKET_INTERNED_DATA, &f))
        read_interned(t, pb_bytes(&f));
    return !t->failed && !t->strings.failed;
}

static void print_safely(const char *from, const char *end, FILE *to)
{
    for (const char *c = from; c < end; c++) /* names of files and functions are anybody's */
        fputc((unsigned char)*c < ' ' || *c == 127 ? '?' : *c, to);
}

void profile_print_function(const struct profile_stacks *t, const struct profile_function *f, FILE *to)
{
    const char *text = strpool_cstr(&t->strings, f->text), *tab = strrchr(text, '\t');
    print_safely(text, tab, to);
    fputs(tab[1] ? "  [" : "", to);
    print_safely(tab + 1, tab + strlen(tab), to);
    fputs(tab[1] ? "]\n" : "\n", to);
}

void profile_stacks_free(struct profile_stacks *t)
{
    for (size_t i = 0; i < t->mappings.n; i++) {
        elf_names_free(&t->mappings.p[i].names);
        mapped_file_close(&t->mappings.p[i].file);
    }
    for (size_t i = 0; i < PROFILE_KINDS; i++)
        u64map_free(&t->index[i]);
    u64map_free(&t->generations);
    u64map_free(&t->by_text);
    strpool_free(&t->strings);
    vec_free(&t->mappings);
    vec_free(&t->frames);
    vec_free(&t->stacks);
    vec_free(&t->functions);
}
