/* Imports ProtoLog: lines whose texts stand in a viewer's config, by number, with places for parameters. */
#include "importer/winscope/winscope_internal.h"

#include <inttypes.h>
#include <stdio.h>

#define COLLISION_TAG "COLLISION_GROUP"

enum {
    MAX_TEXT = 8192,
    NONE = UINT32_MAX,
    MAX_SAME = 64, /* texts of one number */
    /* What lines may hold, since a text stands once for many of them: so much, and more for each byte of a line. */
    FIRST_ROOM = 1 << 20,
    ROOM_PER_BYTE = 32,
};

/* How many parameters of each kind a text takes, or a line has. */
struct param_counts {
    size_t strings, ints, bools, doubles;
};

struct template
{ /* a text that a number stands for */
    struct param_counts params;
    strid text, location;
    uint64_t level;
    uint32_t group;
    uint32_t next; /* another one of the same number, index; NONE: no */
};

struct protolog {
    struct u64map templates; /* number -> first template */
    VEC(struct template)
    list;
    struct u64map tags; /* group -> tag, 0: it has two */
    uint64_t room;      /* bytes that lines with their parameters may still take */
};

struct params { /* of one line; what is left of each kind */
    struct packet *p;
    struct pb_numbers strings, ints, bools;
    struct pb_cursor doubles, packed_doubles;
};

void protolog_close(struct protolog *l)
{
    if (!l)
        return;
    u64map_free(&l->templates);
    vec_free(&l->list);
    u64map_free(&l->tags);
    mem_free(l);
}

static void count(struct packet *p, enum stat_key stat)
{
    stats_add(&p->m->st->stats, p->m->id, stat, 1);
}

static void count_left_out(struct packet *p, enum stat_key stat)
{
    stats_add_idx(&p->m->st->stats, p->m->id, stat, (int32_t)p->gen->seq->id, 1);
}

static struct protolog *protolog_of(struct packet *p)
{
    struct winscope_machine *w = winscope_of(p);
    if (!w->protolog && (w->protolog = mem_zalloc(sizeof *w->protolog)))
        w->protolog->room = FIRST_ROOM;
    p->m->im->failed |= !w->protolog;
    return w->protolog;
}

static bool is_kind(char c)
{
    return c && strchr("doxfegbs", c);
}

static struct param_counts taken_by(struct slice text)
{
    struct param_counts n = {0};
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.p[i] != '%')
            continue;
        char kind = (char)text.p[++i];
        if (!is_kind(kind))
            continue;
        if (kind == 's')
            n.strings++;
        else if (kind == 'b')
            n.bools++;
        else if (strchr("dox", kind))
            n.ints++;
        else
            n.doubles++;
    }
    return n;
}

static void add_template(struct packet *p, struct protolog *l, struct slice bytes)
{
    uint64_t id = (uint64_t)winscope_number(bytes, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_MESSAGE_ID, 0);
    struct template t = {.text = winscope_text(p->m, bytes, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_MESSAGE),
                         .location = winscope_text(p->m, bytes, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_LOCATION),
                         .level = (uint64_t)winscope_number(bytes, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_LEVEL, 0),
                         .group = (uint32_t)winscope_number(bytes, PROTO_LOG_VIEWER_CONFIG_MESSAGE_DATA_GROUP_ID, 0),
                         .next = NONE};
    t.params = taken_by(strpool_view(&p->m->st->strings, t.text));
    bool added = false;
    uint64_t *first = u64map_put(&l->templates, id, &added);
    if (!first) {
        p->m->im->failed = true;
        return;
    }
    if (!added) {
        uint32_t i = (uint32_t)*first;
        for (unsigned n = 1;; i = l->list.p[i].next, n++) {
            const struct template *k = &l->list.p[i];
            if (k->text == t.text && k->level == t.level && k->group == t.group && k->location == t.location)
                return; /* told again */
            if (k->next == NONE && n < MAX_SAME)
                break;
            if (k->next == NONE) {
                count_left_out(p, STAT_winscope_protolog_texts_left_out);
                return;
            }
        }
        l->list.p[i].next = (uint32_t)l->list.n;
    } else {
        *first = l->list.n;
    }
    if (!vec_push(&l->list, t))
        p->m->im->failed = true;
}

static void add_group(struct packet *p, struct protolog *l, struct slice bytes)
{
    uint64_t id = (uint64_t)winscope_number(bytes, PROTO_LOG_VIEWER_CONFIG_GROUP_ID, 0);
    strid tag = winscope_text(p->m, bytes, PROTO_LOG_VIEWER_CONFIG_GROUP_TAG);
    bool added = false;
    uint64_t *known = u64map_put(&l->tags, id, &added);
    if (!known) {
        p->m->im->failed = true;
    } else if (added) {
        *known = tag;
    } else if (*known != tag) {
        count(p, STAT_winscope_protolog_group_tag_collision);
        *known = import_str(p->m->im, COLLISION_TAG);
    }
}

enum tokenize_result protolog_config_tokenize(struct packet *p)
{
    struct protolog *l = protolog_of(p);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (l && pb_next(&c, &f)) {
        if (f.id == PROTO_LOG_VIEWER_CONFIG_MESSAGES)
            add_template(p, l, pb_bytes(&f));
        else if (f.id == PROTO_LOG_VIEWER_CONFIG_GROUPS)
            add_group(p, l, pb_bytes(&f));
    }
    return TOKENIZE_DONE;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static struct params params_of(struct packet *p)
{
    return (struct params){.p = p,
                           .strings = pb_numbers(p->field, PROTO_LOG_MESSAGE_STR_PARAM_IIDS),
                           .ints = pb_numbers(p->field, PROTO_LOG_MESSAGE_SINT64_PARAMS),
                           .bools = pb_numbers(p->field, PROTO_LOG_MESSAGE_BOOLEAN_PARAMS),
                           .doubles = pb_cursor(p->field)};
}

static bool next_double(struct params *k, double *value)
{
    struct pb_field f;
    for (;;) {
        if (k->packed_doubles.end - k->packed_doubles.p >= 8) {
            memcpy(value, k->packed_doubles.p, 8);
            k->packed_doubles.p += 8;
            return true;
        }
        do {
            if (!pb_next(&k->doubles, &f))
                return false;
        } while (f.id != PROTO_LOG_MESSAGE_DOUBLE_PARAMS);
        if (f.wire != PB_BYTES) {
            *value = pb_double(&f);
            return true;
        }
        k->packed_doubles = pb_sub(&f);
    }
}

/* Writes the next parameter of a kind; false when there is none. */
static bool put_param(struct params *k, char kind, char *text, size_t cap, size_t *n)
{
    uint64_t word;
    double real;
    int len = 0;
    switch (kind) {
    case 'd':
    case 'o':
    case 'x': {
        if (!pb_next_number(&k->ints, &word))
            return false;
        int64_t value = (int64_t)(word >> 1 ^ (0 - (word & 1)));
        len = kind == 'd'   ? snprintf(text, cap, "%" PRId64, value)
              : kind == 'o' ? snprintf(text, cap, "%" PRIo64, (uint64_t)value)
                            : snprintf(text, cap, "%" PRIx64, (uint64_t)value);
        break;
    }
    case 'f':
    case 'e':
    case 'g':
        if (!next_double(k, &real))
            return false;
        len = kind == 'f'   ? snprintf(text, cap, "%f", real)
              : kind == 'e' ? snprintf(text, cap, "%e", real)
                            : snprintf(text, cap, "%g", real);
        break;
    case 'b':
        if (!pb_next_number(&k->bools, &word))
            return false;
        len = snprintf(text, cap, "%s", word ? "true" : "false");
        break;
    default: {
        if (!pb_next_number(&k->strings, &word))
            return false;
        strid s = winscope_interned(k->p->gen, INTERNED_DATA_PROTOLOG_STRING_ARGS, word);
        if (!s)
            count(k->p, STAT_winscope_protolog_missing_interned_arg_parse_errors);
        struct slice of = s ? strpool_view(&k->p->m->st->strings, s) : slice_str("<ERROR>");
        len = snprintf(text, cap, "%.*s", (int)(of.len < cap ? of.len : cap), (const char *)of.p);
    }
    }
    *n = len < 0 ? 0 : (size_t)len < cap ? (size_t)len : cap - 1;
    return true;
}

/* Whether there is room for another text of n bytes; false is counted. */
static bool take_room(struct packet *p, struct protolog *l, size_t n)
{
    bool fits = n <= l->room;
    if (fits)
        l->room -= n;
    else
        count_left_out(p, STAT_winscope_protolog_lines_as_templates);
    return fits;
}

/* The text with its parameters; without them when all lines would be too long with them. */
static strid format_line(struct packet *p, struct protolog *l, strid text)
{
    struct slice t = strpool_view(&p->m->st->strings, text);
    char out[MAX_TEXT];
    size_t n = 0, len;
    struct params k = params_of(p);
    uint64_t word;
    double real;
    for (size_t i = 0; i < t.len && n + 1 < sizeof out; i++) {
        char c = (char)t.p[i], kind = i + 1 < t.len ? (char)t.p[i + 1] : 0;
        if (c != '%' || (kind != '%' && !is_kind(kind))) {
            if (c == '%')
                count(p, STAT_winscope_protolog_invalid_interpolation_parse_errors);
            out[n++] = c;
            continue;
        }
        i++;
        if (kind == '%') {
            out[n++] = '%';
            continue;
        }
        if (!put_param(&k, kind, out + n, sizeof out - n, &len)) {
            count(p, STAT_winscope_protolog_param_mismatch);
            len = (size_t)snprintf(out + n, sizeof out - n, "[MISSING_PARAM]");
            len = len < sizeof out - n ? len : sizeof out - n - 1;
        }
        n += len;
    }
    if (pb_next_number(&k.ints, &word) || pb_next_number(&k.strings, &word) || pb_next_number(&k.bools, &word) ||
        next_double(&k, &real))
        count(p, STAT_winscope_protolog_param_mismatch);
    return take_room(p, l, n) ? import_slice(p->m->im, slice_of(out, n)) : text;
}

static struct param_counts had_by(struct packet *p)
{
    struct params k = params_of(p);
    struct param_counts n = {0};
    uint64_t word;
    double real;
    while (pb_next_number(&k.strings, &word))
        n.strings++;
    while (pb_next_number(&k.ints, &word))
        n.ints++;
    while (pb_next_number(&k.bools, &word))
        n.bools++;
    while (next_double(&k, &real))
        n.doubles++;
    return n;
}

static bool same_counts(const struct param_counts *a, const struct param_counts *b)
{
    return a->strings == b->strings && a->ints == b->ints && a->bools == b->bools && a->doubles == b->doubles;
}

/* The one template of a number whose parameters fit; NULL when there are none or several. */
static const struct template *only_fitting(struct packet *p, const struct protolog *l, uint32_t first)
{
    const struct template *found = NULL;
    struct param_counts had = had_by(p);
    for (uint32_t i = first; i != NONE; i = l->list.p[i].next) {
        if (!same_counts(&l->list.p[i].params, &had))
            continue;
        if (found)
            return NULL;
        found = &l->list.p[i];
    }
    return found;
}

/* What a line says for which several templates fit, or none: all that it may mean; its number, when there is no room
 * for that. */
static strid collision_text(struct packet *p, struct protolog *l, uint32_t first, uint64_t id)
{
    const struct strpool *strings = &p->m->st->strings;
    char out[MAX_TEXT];
    int n = snprintf(out, sizeof out, "<PROTOLOG COLLISION (id=0x0x%" PRIx64 ") ", id), head = n;
    struct param_counts had = had_by(p);
    bool some = false;
    for (uint32_t i = first; i != NONE && (size_t)n < sizeof out; i = l->list.p[i].next) {
        if (!same_counts(&l->list.p[i].params, &had))
            continue;
        struct slice line = strpool_view(strings, format_line(p, l, l->list.p[i].text));
        n += snprintf(out + n, sizeof out - (size_t)n, "%s'%.*s'",
                      some ? ",\n " : "MULTIPLE TYPE MATCHES : ", (int)line.len, (const char *)line.p);
        some = true;
    }
    if ((size_t)n < sizeof out)
        n += snprintf(out + n, sizeof out - (size_t)n, "%s>", some ? "" : "NO TYPE MATCH");
    size_t len = (size_t)n < sizeof out ? (size_t)n : sizeof out - 1;
    return import_slice(p->m->im, slice_of(out, take_room(p, l, len) ? len : (size_t)head));
}

static strid tag_of(struct packet *p, const struct protolog *l, uint32_t group)
{
    const uint64_t *tag = u64map_get(&l->tags, group);
    if (tag)
        return (strid)*tag;
    count(p, STAT_winscope_protolog_group_tag_missing);
    return import_str(p->m->im, "UNKNOWN_GROUP");
}

void protolog_parse(struct packet *p)
{
    static const char *const levels[] = {"UNKNOWN", "DEBUG", "VERBOSE", "INFO", "WARN", "ERROR", "WTF"};
    struct protolog *l = protolog_of(p);
    struct importer *im = p->m->im;
    struct protolog_row row = {.ts = p->ts};
    struct pb_field f;
    uint64_t id = (uint64_t)winscope_number(p->field, PROTO_LOG_MESSAGE_MESSAGE_ID, 0);
    const uint64_t *first = l ? u64map_get(&l->templates, id) : NULL;
    const struct template *t = first ? &l->list.p[*first] : NULL;
    if (l)
        l->room += (uint64_t)ROOM_PER_BYTE * p->field.len;
    if (pb_find(p->field, PROTO_LOG_MESSAGE_STACKTRACE_IID, &f)) {
        row.stacktrace = winscope_interned(p->gen, INTERNED_DATA_PROTOLOG_STACKTRACE, pb_u64(&f));
        if (!row.stacktrace) {
            count(p, STAT_winscope_protolog_missing_interned_stacktrace_parse_errors);
            row.stacktrace = import_str(im, "<ERROR>");
        }
    }
    if (t && t->next != NONE && (t = only_fitting(p, l, (uint32_t)*first)))
        count(p, STAT_winscope_protolog_message_collision_resolved);
    if (t) {
        row.level = import_str(im, levels[t->level < sizeof levels / sizeof *levels ? t->level : 0]);
        row.tag = tag_of(p, l, t->group);
        row.message = format_line(p, l, t->text);
        row.location = t->location;
    } else if (first) {
        count(p, STAT_winscope_protolog_message_collision);
        row.level = import_str(im, "WARN");
        row.tag = import_str(im, COLLISION_TAG);
        row.message = collision_text(p, l, (uint32_t)*first, id);
    } else {
        count(p, STAT_winscope_protolog_message_decoding_failed);
    }
    protolog_insert(p->m->st, &row);
}
