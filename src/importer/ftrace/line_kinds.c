/* Finds out what kind of event a line of text is, and turns it into rows. */
#include "importer/ftrace/line_internal.h"
#include "importer/lines/line_reader.h"
#include "wire/pb_writer.h"

struct line_kind {
    strid name;                           /* as in the text */
    strid row_name;                       /* as in ftrace_event */
    const struct ftrace_event_desc *desc; /* NULL: the table does not know it */
    line_fn_event fn;                     /* what the text does; NULL: a row is all */
    bool text_only;                       /* ARGS is one text, not words */
};

enum { RECENT = 64 /* names found lately, by a cheap hash */ };

struct line_kinds {
    VEC(struct line_kind)
    kinds;
    struct u64map by_name;   /* strid -> kind */
    struct u64map described; /* strid of tracefs names -> index of the table */
    struct {
        const uint8_t *p;
        uint32_t len, kind;
    } recent[RECENT];
    struct arena names; /* that `recent` points to */
    struct pb_writer payload;
};

void line_kinds_close(struct line_kinds *k)
{
    if (!k)
        return;
    vec_free(&k->kinds);
    u64map_free(&k->by_name);
    u64map_free(&k->described);
    arena_free(&k->names);
    pb_writer_free(&k->payload);
    mem_free(k);
}

static struct line_kinds *kinds_of(struct ftrace_machine *f)
{
    if (f->lines)
        return f->lines;
    struct line_kinds *k = f->lines = mem_zalloc(sizeof *k);
    bool ok = k != NULL;
    for (size_t i = 0; ok && i < ftrace_event_count(); i++) {
        const struct ftrace_event_desc *d = ftrace_event_at(i);
        const char *name = d->tracefs_name ? d->tracefs_name : d->name;
        bool added;
        uint64_t *at = u64map_put(&k->described, import_str(f->im, name), &added);
        ok = at != NULL;
        if (at && added) /* a name of two groups: the first */
            *at = i;
    }
    f->im->failed |= !ok;
    return k;
}

static struct line_kind make_kind(struct ftrace_machine *f, struct line_kinds *k, struct slice event, strid name)
{
    struct line_kind kind = {.name = name, .row_name = name};
    for (const struct line_handler *h = ftrace_line_handlers; h->name; h++)
        if (slice_eq_str(event, h->name))
            kind.fn = h->fn;
    const uint64_t *at = u64map_get(&k->described, name);
    kind.text_only =
        slice_eq_str(event, "tracing_mark_write") || slice_eq_str(event, "print") || slice_eq_str(event, "0");
    if (kind.text_only) { /* one thing, by three names */
        kind.desc = ftrace_event_by_id(FTRACE_EVENT_PRINT);
        kind.row_name = import_str(f->im, "print");
    } else if (at) {
        kind.desc = ftrace_event_at(*at);
        kind.row_name = import_str(f->im, kind.desc->name);
    }
    return kind;
}

uint32_t ftrace_line_kind(struct machine_ctx *m, struct slice event)
{
    struct line_kinds *k = kinds_of(m->ftrace);
    if (!k)
        return UINT32_MAX;
    unsigned slot = (unsigned)(event.len * 7 + event.p[event.len / 2] * 3u + event.p[event.len - 1]) % RECENT;
    if (k->recent[slot].len == event.len && memcmp(k->recent[slot].p, event.p, event.len) == 0)
        return k->recent[slot].kind;
    strid name = import_slice(m->im, event);
    bool added;
    uint64_t *at = name ? u64map_put(&k->by_name, name, &added) : NULL;
    if (!at || (added && !vec_push(&k->kinds, make_kind(m->ftrace, k, event, name)))) {
        m->im->failed = true;
        return UINT32_MAX;
    }
    if (added)
        *at = k->kinds.n - 1;
    k->recent[slot].p = strpool_view(&m->st->strings, name).p;
    k->recent[slot].len = (uint32_t)event.len;
    k->recent[slot].kind = (uint32_t)*at;
    return (uint32_t)*at;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

/* A number in any notation that the kernel prints; `hex`: without 0x too. */
static bool any_number(struct slice s, bool hex, int64_t *value)
{
    uint64_t u;
    if (!hex && number_decimal(s, value))
        return true;
    if (!hex && !(s.len > 2 && s.p[0] == '0' && (s.p[1] | 32) == 'x'))
        return false;
    bool ok = number_hex(s, &u);
    *value = (int64_t)u;
    return ok;
}

static bool is_hex_field(const struct ftrace_field_desc *field)
{
    return strcmp(field->name, "clone_flags") == 0;
}

/* The field that a word of the text is about; NULL when there is none. */
static const struct ftrace_field_desc *field_of(const struct ftrace_event_desc *d, struct slice key)
{
    char name[64];
    if (!d || key.len >= sizeof name)
        return NULL;
    memcpy(name, key.p, key.len);
    name[key.len] = 0;
    return ftrace_field_by_name(d, name);
}

/* The args of a row: words by the names of fields, with their types where the table has them. */
static argset row_args(const struct ftrace_event *e, const struct line_kind *k, const struct line_args *a)
{
    struct arg items[sizeof a->words / sizeof *a->words];
    uint32_t n = 0;
    if (k->text_only || !a->n) {
        if (!a->text.len)
            return ARGSET_NONE;
        strid key = ftrace_text(e, k->text_only ? "buf" : "text");
        items[n++] = (struct arg){key, key, import_slice(e->m->im, a->text), ARG_STRING};
        return args_intern(&e->m->st->args, items, n);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const struct line_word *w = &a->words[i];
        if (!w->key.len)
            continue;
        const struct ftrace_field_desc *field = field_of(k->desc, w->key);
        strid key = import_slice(e->m->im, w->key);
        int64_t number;
        bool is_text = field && field->type == FTRACE_FIELD_STRING;
        if (!is_text && any_number(w->value, field && is_hex_field(field), &number)) {
            bool is_signed = !field || field->type == FTRACE_FIELD_INT32 || field->type == FTRACE_FIELD_INT64;
            items[n++] = (struct arg){key, key, number, is_signed ? ARG_INT : ARG_UINT};
        } else {
            items[n++] = (struct arg){key, key, import_slice(e->m->im, w->whole), ARG_STRING};
        }
    }
    if (!n) {
        strid key = ftrace_text(e, "text");
        items[n++] = (struct arg){key, key, import_slice(e->m->im, a->text), ARG_STRING};
    }
    return args_intern(&e->m->st->args, items, n);
}

static void add_row(const struct ftrace_event *e, const struct line_kind *k, const struct line_args *a,
                    uint32_t common_flags)
{
    struct ftrace_cpu *c = ftrace_cpu(e->f, e->cpu);
    if (c && !e->m->im->opt.no_ftrace_raw)
        ftrace_event_insert(e->m->st, &(struct ftrace_event_row){.ts = e->ts,
                                                                 .name = k->row_name,
                                                                 .utid = a->utid,
                                                                 .arg_set_id = row_args(e, k, a),
                                                                 .common_flags = common_flags,
                                                                 .ucpu = ftrace_ucpu(c)});
}

/* --- events that only the binary form has handlers for ----------------------------------------------------------- */

/* sys_enter and sys_exit: "NR 1 (0, 1, 2)", "NR 1 = 0". */
static void put_syscall(struct pb_writer *w, const struct line_args *a)
{
    int64_t v;
    uint64_t u;
    if (a->n < 2 || !slice_eq_str(a->words[0].value, "NR") || !number_decimal(a->words[1].value, &v))
        return;
    pb_put_i64(w, FTRACE_SYS_ENTER_ID, v);
    for (uint32_t i = 2; i < a->n; i++) {
        struct slice s = a->words[i].value;
        while (s.len && (s.p[0] == '(' || s.p[0] == '='))
            s = slice_from(s, 1);
        while (s.len && (s.p[s.len - 1] == ',' || s.p[s.len - 1] == ')'))
            s.len--;
        if (number_decimal(s, &v) && !number_hex(s, &u))
            pb_put_i64(w, FTRACE_SYS_ENTER_ARGS, v);
        else if (number_hex(s, &u))
            pb_put_varint(w, FTRACE_SYS_ENTER_ARGS, u);
    }
}

static void put_fields(struct pb_writer *w, const struct ftrace_event_desc *d, const struct line_args *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        const struct ftrace_field_desc *field = a->words[i].key.len ? field_of(d, a->words[i].key) : NULL;
        int64_t number;
        if (!field)
            continue;
        if (field->type == FTRACE_FIELD_STRING)
            pb_put_bytes(w, field->number, a->words[i].whole.p, a->words[i].whole.len);
        else if (any_number(a->words[i].value, is_hex_field(field), &number))
            pb_put_i64(w, field->number, number);
    }
}

/* Writes the event as packets have it, and lets its handler read that. */
static void parse_as_binary(struct ftrace_event *e, struct line_kinds *k, const struct ftrace_event_desc *d,
                            const struct line_args *a)
{
    void (*handler)(const struct ftrace_event *) = e->f->kinds[d->id].handler;
    if (!handler)
        return;
    k->payload.n = 0;
    if (d->id == FTRACE_EVENT_SYS_ENTER || d->id == FTRACE_EVENT_SYS_EXIT)
        put_syscall(&k->payload, a);
    else
        put_fields(&k->payload, d, a);
    e->payload = slice_of(k->payload.p, k->payload.n);
    e->gen = UINT32_MAX; /* no interned symbols */
    handler(e);
}

void ftrace_line_parse(struct machine_ctx *m, const struct ftrace_line *l)
{
    struct ftrace_machine *f = m->ftrace;
    struct line_kinds *all = f->lines;
    if (!all || l->kind >= all->kinds.n || l->cpu >= FTRACE_MAX_CPUS)
        return;
    const struct line_kind *k = &all->kinds.p[l->kind];
    struct ftrace_event e = {.f = f,
                             .m = m,
                             .ts = l->ts,
                             .cpu = l->cpu,
                             .pid = (uint32_t)l->pid,
                             .id = k->desc ? k->desc->id : 0,
                             .line_thread = l->utid + 1,
                             .line_file = l->file};
    struct line_args a;
    a.utid = l->utid;
    a.text = l->args;
    a.n = 0;
    if (!k->text_only)
        line_args_split(&a, l->args);
    if (m->im->opt.all_text_events)
        add_row(&e, k, &a, l->common_flags);
    if (k->fn)
        k->fn(&e, &a);
    else if (m->im->opt.all_text_events && k->desc)
        parse_as_binary(&e, all, k->desc, &a);
}
