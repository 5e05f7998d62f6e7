/* Syscall slices on the track of the thread, from sys_enter and sys_exit. */
#include "importer/ftrace/ftrace_internal.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"
#include "wire/syscall_names.h"

/* The args of a call's slice are made once, when it returns: the args of sys_enter as they came (field 2, repeated),
 * and the result in a field of a number of its own. */
enum { KEPT_RET = 15, KEPT_BYTES = 96, RET_BYTES = 11 };

/* A call that has not returned, and what is known of the thread's calls. */
struct open_call {
    struct kept_sharing events, slices; /* of the args of each */
    uint32_t slice;                     /* row + 1; 0: none */
    bool writes;                        /* in write(2), and no marker has ended its slice yet */
    uint8_t len;
    uint8_t bytes[KEPT_BYTES];
};

struct syscalls {
    struct ftrace_machine *f;
    strid arch; /* machine.arch that `names` is of */
    const char *const *table;
    strid names[SYSCALL_LIMIT + 1]; /* 0: not made yet */
    strid sys_write;
    BY_ID(struct open_call) calls; /* by utid */
};

static void decode_args(void *ctx, uint32_t aux, struct slice payload, struct arg_list *out);

struct syscalls *syscalls_open(struct ftrace_machine *f)
{
    struct syscalls *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->f = f;
    s->sys_write = import_str(f->im, "sys_write");
    args_set_decoder(&f->m->st->args, ARGS_KIND_FTRACE_SYSCALL, decode_args, f->im);
    return s;
}

void syscalls_close(struct syscalls *s)
{
    if (!s)
        return;
    by_id_free(&s->calls);
    mem_free(s);
}

/* system_info may come late: the table is looked up again when the machine's architecture becomes known. */
static void choose_table(struct syscalls *s, strid arch)
{
    s->arch = arch;
    s->table = syscall_names(strpool_cstr(&s->f->m->st->strings, arch));
    memset(s->names, 0, sizeof s->names);
}

static inline strid call_name(struct syscalls *s, uint32_t number)
{
    if (number >= SYSCALL_LIMIT)
        return 0;
    if (__builtin_expect(s->f->m->arch != s->arch, 0))
        choose_table(s, s->f->m->arch);
    if (__builtin_expect(!s->names[number], 0)) {
        const char *name = s->table ? s->table[number] : NULL;
        s->names[number] = name ? import_str(s->f->im, name) : strpool_printf(&s->f->m->st->strings, "sys_%u", number);
    }
    return s->names[number];
}

static inline struct open_call *open_call(struct syscalls *s, uint32_t utid)
{
    struct open_call *c = by_id_make(&s->calls, utid);
    s->f->im->failed |= !c;
    return c;
}

struct kept_sharing *syscalls_sharing(struct syscalls *s, uint32_t utid)
{
    struct open_call *c = open_call(s, utid);
    return c ? &c->events : NULL;
}

/* The key of the n-th argument: a kernel's event has six. */
static strid arg_key(struct strpool *strings, uint32_t n)
{
    static const char *const keys[] = {"args[0]", "args[1]", "args[2]", "args[3]", "args[4]", "args[5]"};
    return n < sizeof keys / sizeof *keys ? strpool_intern_str(strings, keys[n])
                                          : strpool_printf(strings, "args[%u]", n);
}

static void decode_args(void *ctx, uint32_t aux, struct slice payload, struct arg_list *out)
{
    struct args *a = &((struct importer *)ctx)->st->args;
    struct pb_cursor c = pb_cursor(payload), packed;
    struct pb_field f;
    uint32_t n = 0;
    (void)aux;
    strid flat = strpool_intern_str(a->strings, "args");
    while (pb_next(&c, &f)) {
        uint64_t v;
        if (f.id == FTRACE_SYS_ENTER_ARGS && f.wire != PB_BYTES) {
            arg_list_add(a, out, flat, arg_key(a->strings, n++), ARG_UINT, pb_i64(&f));
        } else if (f.id == FTRACE_SYS_ENTER_ARGS) {
            packed = pb_sub(&f);
            while (pb_next_packed(&packed, &v))
                arg_list_add(a, out, flat, arg_key(a->strings, n++), ARG_UINT, (int64_t)v);
        } else if (f.id == KEPT_RET) {
            arg_list_int(a, out, "ret", pb_i64(&f));
        }
    }
}

/* Gives the slice of a call its args; the call is over, or will not be seen to return. */
static void set_args(struct syscalls *s, struct open_call *c, uint32_t len)
{
    if (!c->slice)
        return;
    if (len) {
        argset args =
            kept_args(&s->f->kept, &c->slices, ARGS_KIND_FTRACE_SYSCALL, 0, slice_of(c->bytes, len), KEPT_ANYWHERE);
        if (!argset_is_none(args))
            ROW_SET_ARGS(s->f->m->st, slice, arg_set_id, c->slice - 1, args);
    }
    c->slice = 0;
}

/* Copies the args of a call, by words. A copy of at most so many bytes as one has room for is a single instruction to
 * the compiler, one that takes longer to begin than everything else that is done for a call. */
static inline void copy_args(uint8_t *to, const uint8_t *from, size_t n)
{
    enum { WORDS = 16, WORD = 8 };
    if (n >= WORDS) {
        for (size_t i = 0; i < n - WORDS; i += WORDS)
            memcpy(to + i, from + i, WORDS);
        memcpy(to + n - WORDS, from + n - WORDS, WORDS);
    } else if (n >= WORD) {
        memcpy(to, from, WORD);
        memcpy(to + n - WORD, from + n - WORD, WORD);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* The number of a call; keeps its args. */
static uint32_t read_call(struct slice payload, struct open_call *c)
{
    struct pb_cursor cursor = pb_cursor(payload);
    struct pb_field f;
    uint32_t number = 0, len = 0;
    const uint8_t *from = cursor.p, *to = from; /* args that stand beside each other, not copied yet */
    for (const uint8_t *at = cursor.p; pb_next(&cursor, &f); at = cursor.p) {
        if (f.id == FTRACE_SYS_ENTER_ID)
            number = pb_u32(&f);
        else if (f.id == FTRACE_SYS_ENTER_ARGS &&
                 len + (size_t)(to - from) + (size_t)(cursor.p - at) <= KEPT_BYTES - RET_BYTES) {
            if (at != to) {
                memcpy(c->bytes + len, from, (size_t)(to - from));
                len += (uint32_t)(to - from);
                from = at;
            }
            to = cursor.p;
        }
    }
    if (to != from) /* a line of text that names no field has no bytes at all */
        memcpy(c->bytes + len, from, (size_t)(to - from));
    len += (uint32_t)(to - from);
    c->len = (uint8_t)len;
    return number;
}

/* The same of a payload whose order is known. */
static uint32_t read_known_call(const struct ftrace_event *e, struct open_call *c)
{
    const uint8_t *p = e->payload.p + 1 /* the number's tag */, *args = e->payload.p + e->call_args;
    size_t len = e->payload.len - e->call_args;
    uint64_t number;
    if (len > KEPT_BYTES - RET_BYTES || !pb_varint(&p, args, &number))
        return read_call(e->payload, c);
    copy_args(c->bytes, args, len);
    c->len = (uint8_t)len;
    return (uint32_t)number;
}

/* The same of a payload as recorders write it: the number, then nothing but args, each with its tag. False when it is
 * another. */
static bool read_plain_call(struct slice payload, struct open_call *c, uint32_t *number)
{
    enum { NUMBER_TAG = FTRACE_SYS_ENTER_ID << 3 | PB_VARINT, ARG_TAG = FTRACE_SYS_ENTER_ARGS << 3 | PB_VARINT };
    if (!payload.len) /* a line of text that names no field has no bytes at all */
        return false;
    const uint8_t *p = payload.p, *end = p + payload.len, *args;
    uint64_t v;
    if (*p++ != NUMBER_TAG || !pb_varint(&p, end, &v) || end - p > KEPT_BYTES - RET_BYTES)
        return false;
    *number = (uint32_t)v;
    for (args = p; p < end;)
        if (*p++ != ARG_TAG || !pb_skip_varint(&p, end))
            return false;
    copy_args(c->bytes, args, (size_t)(end - args));
    c->len = (uint8_t)(end - args);
    return true;
}

void syscalls_enter(const struct ftrace_event *e)
{
    struct syscalls *s = e->f->syscalls;
    uint32_t utid = event_utid(e);
    struct open_call *c = open_call(s, utid);
    if (!c)
        return;
    set_args(s, c, c->len);
    uint32_t number;
    if (e->call_args)
        number = read_known_call(e, c);
    else if (!read_plain_call(e->payload, c, &number))
        number = read_call(e->payload, c);
    strid name = call_name(s, number);
    if (!name)
        return;
    uint32_t row = ftrace_begin(e, ftrace_thread_track(e, utid), 0, name, ARGSET_NONE);
    c->slice = row == SLICE_NONE ? 0 : row + 1;
    if (name == s->sys_write)
        c->writes = true;
}

/* A call's return. */
struct call_return {
    uint32_t number;
    bool has_ret;
    uint64_t ret;
};

static struct call_return read_return(struct slice payload)
{
    struct pb_cursor cursor = pb_cursor(payload);
    struct pb_field f;
    struct call_return r = {0};
    while (pb_next(&cursor, &f)) {
        if (f.id == FTRACE_SYS_EXIT_ID) {
            r.number = pb_u32(&f);
        } else if (f.id == FTRACE_SYS_EXIT_RET) {
            r.has_ret = true;
            r.ret = pb_u64(&f);
        }
    }
    return r;
}

/* The same of a payload as recorders write it: the number, then the result. False when it is another. */
static inline bool read_plain_return(struct slice payload, struct call_return *r)
{
    enum { NUMBER_TAG = FTRACE_SYS_EXIT_ID << 3 | PB_VARINT, RET_TAG = FTRACE_SYS_EXIT_RET << 3 | PB_VARINT };
    const uint8_t *p = payload.p, *end = p + payload.len;
    uint64_t number;
    if (payload.len < 4 || *p++ != NUMBER_TAG || !pb_varint(&p, end, &number) || p == end || *p++ != RET_TAG ||
        !pb_varint(&p, end, &r->ret) || p != end)
        return false;
    r->number = (uint32_t)number;
    r->has_ret = true;
    return true;
}

void syscalls_exit(const struct ftrace_event *e)
{
    struct syscalls *s = e->f->syscalls;
    struct call_return r;
    if (!read_plain_return(e->payload, &r))
        r = read_return(e->payload);
    uint32_t utid = event_utid(e);
    strid name = call_name(s, r.number);
    struct open_call *c = open_call(s, utid);
    if (!name || !c)
        return;
    if (name == s->sys_write) {
        if (!c->writes) /* no entry seen, or ended by a marker */
            return;
        c->writes = false;
    }
    uint32_t row = ftrace_end(e, ftrace_thread_track(e, utid), 0, name, NULL);
    if (row == SLICE_NONE)
        return;
    if (c->slice != row + 1) { /* of a call around this one: its args are set already */
        struct small_args add = {0};
        if (r.has_ret) {
            small_args_add(e, &add, "ret", ARG_INT, (int64_t)r.ret);
            struct arg_list list = small_args_list(&add);
            slice_add_args(e->m->im->slices, row, &list);
        }
        return;
    }
    uint32_t len = c->len;
    if (r.has_ret) {
        c->bytes[len++] = KEPT_RET << 3 | PB_VARINT;
        len += (uint32_t)pb_encode_varint(c->bytes + len, r.ret);
    }
    set_args(s, c, len);
}

void syscalls_truncate_write(const struct ftrace_event *e, uint32_t utid)
{
    struct syscalls *s = e->f->syscalls;
    struct open_call *c = by_id_find(&s->calls, utid);
    if (!c || !c->writes)
        return;
    c->writes = false;
    stats_add(&e->m->st->stats, e->m->id, STAT_truncated_sys_write_duration, 1);
    set_args(s, c, c->len);
    ftrace_end(e, ftrace_thread_track(e, utid), 0, s->sys_write, NULL);
}

void syscalls_finish(struct syscalls *s)
{
    by_id_each(&s->calls, utid)
    {
        struct open_call *c = by_id_find(&s->calls, utid);
        set_args(s, c, c->len);
    }
}
