/* The grammar of TSDL: blocks, type declarations, aliases. */
#include "importer/ctf/tsdl_internal.h"

#include "base/bisect.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int tsdl_fail(struct tsdl_parser *p, const char *fmt, ...)
{
    if (p->rc)
        return p->rc;
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    int code = p->m->arena.failed ? -MRD_ENOMEM : -MRD_EFORMAT;
    p->rc = p->is_ctf2 ? error_set(p->err, code, "metadata fragment %d: %s", p->lex.token_line, text)
                       : error_set(p->err, code, "metadata line %d column %d: %s", p->lex.token_line,
                                   p->lex.token_column, text);
    return p->rc;
}

void tsdl_work(struct tsdl_parser *p, uint64_t steps)
{
    static const uint64_t most = 10 * 1000 * 1000; /* LTTng's metadata takes a thousand */
    p->work += steps;
    if (p->work > most)
        tsdl_fail(p, "the metadata is too complex");
}

bool tsdl_take(struct tsdl_parser *p, int token)
{
    if (p->rc || p->lex.token != token)
        return false;
    tsdl_next(&p->lex);
    return true;
}

bool tsdl_expect(struct tsdl_parser *p, int token)
{
    if (tsdl_take(p, token))
        return true;
    if (token == TSDL_ASSIGN)
        tsdl_fail(p, "expected ':='");
    else
        tsdl_fail(p, "expected '%c'", token >= TSDL_FIRST_CHAR ? token : '?');
    return false;
}

bool tsdl_at_word(const struct tsdl_parser *p, const char *word)
{
    return !p->rc && p->lex.token == TSDL_WORD && strcmp(p->lex.text, word) == 0;
}

bool tsdl_take_word(struct tsdl_parser *p, const char *word)
{
    if (!tsdl_at_word(p, word))
        return false;
    tsdl_next(&p->lex);
    return true;
}

void *tsdl_alloc(struct tsdl_parser *p, size_t size)
{
    void *mem = arena_zalloc(&p->m->arena, size);
    if (!mem)
        tsdl_fail(p, "out of memory");
    return mem;
}

/* word { "." word }, as one text. */
const char *tsdl_path(struct tsdl_parser *p)
{
    char path[256];
    size_t n = 0;
    do {
        if (p->lex.token != TSDL_WORD) {
            tsdl_fail(p, "expected a name");
            return "";
        }
        int len = snprintf(path + n, sizeof path - n, "%s%s", n ? "." : "", p->lex.text);
        if (len < 0 || n + (size_t)len >= sizeof path) {
            tsdl_fail(p, "name too long");
            return "";
        }
        n += (size_t)len;
        tsdl_next(&p->lex);
    } while (tsdl_take(p, '.'));
    const char *copy = arena_strndup(&p->m->arena, path, n);
    return copy ? copy : "";
}

bool tsdl_number(struct tsdl_parser *p, uint64_t *value, bool *negative)
{
    *negative = tsdl_take(p, '-');
    if (!*negative)
        tsdl_take(p, '+');
    if (p->lex.token != TSDL_NUMBER) {
        tsdl_fail(p, "expected a number");
        return false;
    }
    *value = p->lex.number;
    tsdl_next(&p->lex);
    return true;
}

/* The value of an attribute: a number, a text, or a dotted word. */
static bool parse_value(struct tsdl_parser *p, struct tsdl_value *v)
{
    *v = (struct tsdl_value){.text = ""};
    if (p->lex.token == TSDL_NUMBER || p->lex.token == '-' || p->lex.token == '+') {
        v->is_number = true;
        if (!tsdl_number(p, &v->number, &v->negative))
            return false;
        v->text = arena_printf(&p->m->arena, "%s%llu", v->negative ? "-" : "", (unsigned long long)v->number);
        return v->text || !tsdl_fail(p, "out of memory");
    }
    if (p->lex.token == TSDL_TEXT) {
        v->text = p->lex.text;
        tsdl_next(&p->lex);
        return true;
    }
    v->text = tsdl_path(p);
    return !p->rc;
}

bool tsdl_attribute(struct tsdl_parser *p, const char **name, struct tsdl_value *v)
{
    *name = tsdl_path(p);
    return !p->rc && tsdl_expect(p, '=') && parse_value(p, v) && tsdl_expect(p, ';');
}

static void parse_trace(struct tsdl_parser *p)
{
    while (!p->rc && !tsdl_take(p, '}')) {
        const char *name = tsdl_path(p);
        struct tsdl_value v;
        if (strcmp(name, "packet.header") == 0 && tsdl_expect(p, TSDL_ASSIGN)) {
            p->m->packet_header = tsdl_type(p, 0);
            tsdl_expect(p, ';');
        } else if (tsdl_expect(p, '=') && parse_value(p, &v) && tsdl_expect(p, ';')) {
            if (strcmp(name, "byte_order") == 0)
                p->m->big_endian = strcmp(v.text, "be") == 0 || strcmp(v.text, "network") == 0;
            else if (strcmp(name, "uuid") == 0)
                snprintf(p->m->uuid, sizeof p->m->uuid, "%s", v.text);
        }
    }
}

static void parse_env(struct tsdl_parser *p)
{
    while (!p->rc && !tsdl_take(p, '}')) {
        struct ctf_env e;
        struct tsdl_value v;
        if (!tsdl_attribute(p, &e.name, &v))
            return;
        e.text = v.text;
        if (!vec_push(&p->m->env, e))
            tsdl_fail(p, "out of memory");
    }
}

static void parse_clock(struct tsdl_parser *p)
{
    struct ctf_clock c = {.name = "", .uuid = "", .freq = 1000000000};
    while (!p->rc && !tsdl_take(p, '}')) {
        const char *name;
        struct tsdl_value v;
        if (!tsdl_attribute(p, &name, &v))
            return;
        int64_t number = (int64_t)(v.negative ? 0 - v.number : v.number);
        if (strcmp(name, "name") == 0)
            c.name = v.text;
        else if (strcmp(name, "uuid") == 0)
            c.uuid = v.text;
        else if (strcmp(name, "freq") == 0)
            c.freq = v.number;
        else if (strcmp(name, "offset_s") == 0)
            c.offset_s = number;
        else if (strcmp(name, "offset") == 0)
            c.offset = number;
    }
    if (c.freq == 0)
        tsdl_fail(p, "clock '%s' has frequency 0", c.name);
    if (!p->rc && !vec_push(&p->m->clocks, c))
        tsdl_fail(p, "out of memory");
}

struct ctf_stream_class *ctf_stream_of(struct tsdl_parser *p, uint64_t id)
{
    tsdl_work(p, p->m->streams.n);
    for (size_t i = 0; i < p->m->streams.n && !p->rc; i++)
        if (p->m->streams.p[i]->id == id)
            return p->m->streams.p[i];
    struct ctf_stream_class *s = tsdl_alloc(p, sizeof *s);
    if (!s || !vec_push(&p->m->streams, s))
        return NULL;
    s->id = id;
    s->clock = -1;
    return s;
}

static void parse_stream(struct tsdl_parser *p)
{
    static const struct {
        const char *name;
        size_t offset;
    } parts[] = {
        {"packet.context", offsetof(struct ctf_stream_class, packet_context)},
        {"event.header", offsetof(struct ctf_stream_class, event_header)},
        {"event.context", offsetof(struct ctf_stream_class, event_context)},
    };
    struct ctf_stream_class read = {0};
    while (!p->rc && !tsdl_take(p, '}')) {
        const char *name = tsdl_path(p);
        struct tsdl_value v;
        if (tsdl_take(p, TSDL_ASSIGN)) {
            struct ctf_type *t = tsdl_type(p, 0);
            for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
                if (strcmp(parts[i].name, name) == 0)
                    memcpy((char *)&read + parts[i].offset, &t, sizeof t);
            tsdl_expect(p, ';');
        } else if (tsdl_expect(p, '=') && parse_value(p, &v) && tsdl_expect(p, ';') && strcmp(name, "id") == 0) {
            read.id = v.number;
        }
    }
    struct ctf_stream_class *s = p->rc ? NULL : ctf_stream_of(p, read.id);
    if (s) {
        s->packet_context = read.packet_context;
        s->event_header = read.event_header;
        s->event_context = read.event_context;
    }
}

/* LTTng's levels, as version 2 calls them; NULL for another number. */
static const char *log_level(const struct tsdl_value *v)
{
    static const char *const levels[] = {"emergency",      "alert",         "critical",     "error",
                                         "warning",        "notice",        "info",         "debug:system",
                                         "debug:program",  "debug:process", "debug:module", "debug:unit",
                                         "debug:function", "debug:line",    "debug"};
    return v->is_number && !v->negative && v->number < sizeof levels / sizeof *levels ? levels[v->number] : NULL;
}

static void parse_event(struct tsdl_parser *p)
{
    struct ctf_event_class *e = tsdl_alloc(p, sizeof *e);
    uint64_t stream_id = 0;
    if (!e)
        return;
    e->name = "";
    while (!p->rc && !tsdl_take(p, '}')) {
        const char *name = tsdl_path(p);
        struct tsdl_value v;
        if (tsdl_take(p, TSDL_ASSIGN)) {
            struct ctf_type *t = tsdl_type(p, 0);
            if (strcmp(name, "fields") == 0)
                e->fields = t;
            else if (strcmp(name, "context") == 0)
                e->context = t;
            tsdl_expect(p, ';');
        } else if (tsdl_expect(p, '=') && parse_value(p, &v) && tsdl_expect(p, ';')) {
            if (strcmp(name, "id") == 0)
                e->id = v.number;
            else if (strcmp(name, "stream_id") == 0)
                stream_id = v.number;
            else if (strcmp(name, "name") == 0)
                e->name = v.text;
            else if (strcmp(name, "loglevel") == 0)
                e->log_level = log_level(&v);
            else if (strcmp(name, "model.emf.uri") == 0)
                e->emf_uri = v.text;
        }
    }
    struct ctf_stream_class *s = p->rc ? NULL : ctf_stream_of(p, stream_id);
    if (!s)
        return;
    e->stream = s;
    e->index = (uint32_t)p->m->events.n;
    if (!vec_push(&s->events, e) || !vec_push(&p->m->events, e))
        tsdl_fail(p, "out of memory");
}

static const struct {
    const char *word;
    void (*parse)(struct tsdl_parser *p);
} blocks[] = {
    {"trace", parse_trace},   {"env", parse_env},     {"clock", parse_clock},
    {"stream", parse_stream}, {"event", parse_event}, {"callsite", NULL},
};

static void skip_block(struct tsdl_parser *p)
{
    for (int depth = 1; depth && !p->rc;) {
        if (p->lex.token == TSDL_END || p->lex.token == TSDL_BAD) {
            tsdl_fail(p, "block does not end");
            return;
        }
        depth += (p->lex.token == '{') - (p->lex.token == '}');
        tsdl_next(&p->lex);
    }
}

static void parse_top(struct tsdl_parser *p)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (!tsdl_at_word(p, blocks[i].word))
            continue;
        tsdl_next(&p->lex);
        if (!tsdl_expect(p, '{'))
            return;
        blocks[i].parse ? blocks[i].parse(p) : skip_block(p);
        tsdl_take(p, ';');
        return;
    }
    if (tsdl_take_word(p, "typealias"))
        tsdl_typealias(p);
    else if (tsdl_take_word(p, "typedef"))
        tsdl_typedef(p);
    else if (tsdl_at_word(p, "struct") || tsdl_at_word(p, "variant") || tsdl_at_word(p, "enum")) {
        tsdl_type(p, 0);
        tsdl_expect(p, ';');
    } else {
        tsdl_fail(p, "expected a block or a type declaration");
    }
}

static int by_id(const void *a, const void *b)
{
    const struct ctf_event_class *x = *(struct ctf_event_class *const *)a, *y = *(struct ctf_event_class *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

void ctf_sort_events(struct ctf_metadata *m)
{
    for (size_t i = 0; i < m->streams.n; i++)
        if (m->streams.p[i]->events.n)
            qsort(m->streams.p[i]->events.p, m->streams.p[i]->events.n, sizeof *m->streams.p[i]->events.p, by_id);
}

int tsdl_parse(struct ctf_metadata *m, const char *text, size_t len, struct error *err)
{
    *m = (struct ctf_metadata){0};
    struct tsdl_parser p = {.m = m, .err = err};
    tsdl_lexer_init(&p.lex, text, len, &m->arena);
    while (!p.rc && p.lex.token != TSDL_END)
        parse_top(&p);
    if (!p.rc)
        tsdl_resolve(&p);
    if (!p.rc)
        ctf_roles_by_name(m);
    ctf_sort_events(m);
    vec_free(&p.aliases);
    return p.rc;
}

const char *ctf_env_get(const struct ctf_metadata *m, const char *name)
{
    for (size_t i = 0; i < m->env.n; i++)
        if (strcmp(m->env.p[i].name, name) == 0)
            return m->env.p[i].text;
    return "";
}

const struct ctf_stream_class *ctf_stream_class(const struct ctf_metadata *m, uint64_t id)
{
    for (size_t i = 0; i < m->streams.n; i++)
        if (m->streams.p[i]->id == id)
            return m->streams.p[i];
    return NULL;
}

const struct ctf_event_class *ctf_event_class(const struct ctf_stream_class *s, uint64_t id)
{
    size_t at = s->events.n;
    if (id < at && s->events.p[id]->id == id) /* most often they are numbered from 0 on */
        return s->events.p[id];
    BISECT(at, i, s->events.p[i]->id < id);
    return at < s->events.n && s->events.p[at]->id == id ? s->events.p[at] : NULL;
}

void ctf_metadata_free(struct ctf_metadata *m)
{
    for (size_t i = 0; i < m->streams.n; i++)
        vec_free(&m->streams.p[i]->events);
    vec_free(&m->streams);
    vec_free(&m->events);
    vec_free(&m->clocks);
    vec_free(&m->env);
    arena_free(&m->arena);
    *m = (struct ctf_metadata){0};
}
