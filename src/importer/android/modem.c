/* Imports what a modem says: events that name their text by a token, and the database of those texts.
 *
 * A text has the form of printf(), and the event brings the values. Some texts name the domain that they are of; each
 * domain has a track. Texts are looked for when an event's time comes: their database may come behind it. */
#include "importer/android/android_internal.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HEAD_BYTES = 16, /* of a database: a magic word, how many, nothing */
    ROW_BYTES = 8,   /* a token, and the day on which it was taken out of use */
    MAX_TEXT = 4096,
    MAX_VALUE = 512,
    MAX_WIDTH = 255,
};
#define DATABASE_MAGIC "TOKENS\0\0"
#define IN_USE         UINT32_MAX

struct modem {
    struct machine_ctx *m;
    uint32_t queue;
    struct u64map texts; /* token -> strid */
    struct arena arena;  /* bytes of events that do not stay */
    VEC(struct modem_event)
    events;
};

struct modem_event {
    struct slice bytes;
    int64_t packet_ts;
};

void modem_close(struct modem *s)
{
    if (!s)
        return;
    u64map_free(&s->texts);
    arena_free(&s->arena);
    vec_free(&s->events);
    mem_free(s);
}

/* --- texts with values ---------------------------------------------------------------------------------------------
 */

struct values {
    struct slice left;
    char prefix[32]; /* of the names of args */
    uint32_t n;
    struct arg_list *args;
    struct args *pool;
};

struct text_out {
    char p[MAX_TEXT];
    size_t n;
};

static void append(struct text_out *out, const char *p, size_t len)
{
    size_t room = sizeof out->p - out->n;
    size_t take = len < room ? len : room;
    if (take)
        memcpy(out->p + out->n, p, take);
    out->n += take;
}

static bool take_int(struct values *v, int64_t *value)
{
    const uint8_t *p = v->left.p, *end = p + v->left.len;
    uint64_t raw;
    if (!v->left.len || !pb_varint(&p, end, &raw))
        return false;
    v->left = slice_of(p, (size_t)(end - p));
    *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    return true;
}

static bool take_float(struct values *v, double *value)
{
    float f;
    if (v->left.len < sizeof f)
        return false;
    memcpy(&f, v->left.p, sizeof f);
    v->left = slice_of(v->left.p + sizeof f, v->left.len - sizeof f);
    *value = (double)f;
    return true;
}

static const char *arg_name(struct values *v, char *room, size_t size)
{
    snprintf(room, size, "%s.arg_%" PRIu32, v->prefix, v->n++);
    return room;
}

/* A conversion: "%-08.3llx". */
struct conversion {
    char flags[8];
    int width, precision; /* -1: none */
    bool width_is_value, precision_is_value, is_long;
    char type;
    size_t len; /* of all of it; 0: it is none */
};

static int read_number(const char **p, const char *end)
{
    int n = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
        n = n * 10 + (**p - '0') < MAX_WIDTH ? n * 10 + (**p - '0') : MAX_WIDTH;
    return n;
}

static struct conversion read_conversion(const char *from, const char *end)
{
    struct conversion c = {.width = -1, .precision = -1};
    const char *p = from + 1;
    size_t n = 0;
    for (; p < end && strchr("-+ #0", *p) && *p; p++)
        if (!strchr(c.flags, *p) && n + 1 < sizeof c.flags)
            c.flags[n++] = *p;
    if (p < end && *p == '*')
        c.width_is_value = true, p++;
    else if (p < end && *p >= '1' && *p <= '9')
        c.width = read_number(&p, end);
    if (p < end && *p == '.') {
        p++;
        if (p < end && *p == '*')
            c.precision_is_value = true, p++;
        else
            c.precision = read_number(&p, end);
    }
    unsigned longs = 0;
    for (; p < end && strchr("hlLqjzt", *p) && *p; p++) {
        longs += *p == 'l';
        c.is_long |= *p == 'j' || longs > 1;
    }
    if (p == end)
        return c;
    c.type = *p;
    c.len = (size_t)(p + 1 - from);
    return c;
}

/* The conversion as snprintf() takes it, with a length of ours. */
static void write_format(const struct conversion *c, const char *length, char *out, size_t size)
{
    char width[16] = "", precision[16] = "";
    if (c->width >= 0)
        snprintf(width, sizeof width, "%d", c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof precision, ".%d", c->precision);
    snprintf(out, size, "%%%s%s%s%s%c", c->flags, width, precision, length, c->type);
}

static int bounded(int64_t v)
{
    return v < 0 ? -1 : v > MAX_WIDTH ? MAX_WIDTH : (int)v;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the format is one that write_format() made */

/* Adds a value as text and as an arg; false when the event has it not. */
static bool add_value(struct values *v, struct conversion *c, struct text_out *out)
{
    char format[48], text[MAX_VALUE], name[64];
    int64_t i = 0;
    double d = 0;
    int n;
    if (c->width_is_value && !take_int(v, &i))
        return false;
    if (c->width_is_value)
        c->width = bounded(i);
    if (c->precision_is_value && !take_int(v, &i))
        return false;
    if (c->precision_is_value)
        c->precision = bounded(i);
    if (strchr("fFeEgGaA", c->type)) {
        if (!take_float(v, &d))
            return false;
        write_format(c, "", format, sizeof format);
        n = snprintf(text, sizeof text, format, d);
        arg_list_real(v->pool, v->args, arg_name(v, name, sizeof name), d);
    } else {
        if (!take_int(v, &i))
            return false;
        if (c->type == 'c') {
            write_format(c, "", format, sizeof format);
            n = snprintf(text, sizeof text, format, (int)(unsigned char)i);
            arg_list_int(v->pool, v->args, arg_name(v, name, sizeof name), (unsigned char)i);
        } else if (c->type == 'd' || c->type == 'i') {
            write_format(c, "ll", format, sizeof format);
            i = c->is_long ? i : (int32_t)i;
            n = snprintf(text, sizeof text, format, (long long)i);
            arg_list_int(v->pool, v->args, arg_name(v, name, sizeof name), i);
        } else if (c->type == 'p') {
            n = snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)i);
            arg_list_uint(v->pool, v->args, arg_name(v, name, sizeof name), (uint64_t)i);
        } else {
            uint64_t u = c->is_long ? (uint64_t)i : (uint32_t)i;
            write_format(c, "ll", format, sizeof format);
            n = snprintf(text, sizeof text, format, (unsigned long long)u);
            arg_list_uint(v->pool, v->args, arg_name(v, name, sizeof name), u);
        }
    }
    if (n > 0)
        append(out, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    return true;
}

#pragma GCC diagnostic pop

/* The template with the values in their places. */
static void fill_in(const char *p, size_t len, struct values *v, struct text_out *out)
{
    const char *end = p + len;
    while (p < end) {
        const char *percent = memchr(p, '%', (size_t)(end - p));
        append(out, p, (size_t)((percent ? percent : end) - p));
        if (!percent)
            return;
        struct conversion c = read_conversion(percent, end);
        size_t n = c.len ? c.len : (size_t)(end - percent);
        if (c.len && c.type == '%')
            append(out, "%", 1);
        else if (!c.len || !strchr("dioxXucpfFeEgGaA", c.type)) /* %s, too: its text is not in the event */
            append(out, percent, n);
        else if (!add_value(v, &c, out))
            append(out, "<ERROR>", strlen("<ERROR>"));
        p = percent + n;
    }
}

/* --- events --------------------------------------------------------------------------------------------------------
 */

/* The member of a text "■name♦value■name♦value"; empty when it has none of that name. */
static struct slice member(struct slice text, const char *mark)
{
    static const char ends[] = "\xe2\x96\xa0"; /* ■ */
    const uint8_t *at = memmem(text.p, text.len, mark, strlen(mark));
    if (!at)
        return slice_of(NULL, 0);
    at += strlen(mark);
    size_t left = (size_t)(text.p + text.len - at);
    const uint8_t *end = memmem(at, left, ends, strlen(ends));
    return slice_of(at, end ? (size_t)(end - at) : left);
}

static uint32_t track_of(struct machine_ctx *m, struct slice domain)
{
    strid id = domain.p ? import_slice(m->im, domain) : 0;
    struct track_dim dim = {"modem_domain", DIM_STR, id};
    struct track_spec spec = {
        .type = "pixel_modem_event", .event_type = TRACK_SLICE, .parent = UINT32_MAX, .dims = &dim, .n_dims = 1};
    spec.name =
        domain.p ? strpool_printf(&m->st->strings, "Pixel Modem Events: %.*s", (int)domain.len, (const char *)domain.p)
                 : import_str(m->im, "Pixel Modem Events");
    return track_intern(m->im->tracks, m->id, &spec);
}

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void parse_event(struct modem *s, int64_t ts, const struct modem_event *e)
{
    static const char domain_mark[] = "\xe2\x96\xa0"
                                      "domain\xe2\x99\xa6",
                      format_mark[] = "\xe2\x96\xa0"
                                      "format\xe2\x99\xa6"; /* ■domain♦, ■format♦ */
    struct machine_ctx *m = s->m;
    struct arg_list list = {0}, values = {0};
    struct text_out out = {.n = 0};
    uint32_t token = u32_at(e->bytes.p);
    const uint64_t *known = u64map_get(&s->texts, token);
    strid raw = known ? (strid)*known : import_str(m->im, "Token not found");
    struct slice text = strpool_view(&m->st->strings, raw), domain = {0};
    struct slice format = member(text, format_mark);
    struct values v = {.left = slice_of(e->bytes.p + 4, e->bytes.len - 4), .args = &values, .pool = &m->st->args};
    char hex[16];
    if (format.p && (domain = member(text, domain_mark)).p)
        text = format;
    else
        domain = slice_of(NULL, 0);
    snprintf(v.prefix, sizeof v.prefix, "pw_token_%" PRIu32, token);
    snprintf(hex, sizeof hex, "0x%02" PRIx32, token);
    if (known)
        fill_in((const char *)text.p, text.len, &v, &out);
    else
        append(&out, (const char *)text.p, text.len);
    arg_list_str(&m->st->args, &list, "raw_template", raw);
    arg_list_int(&m->st->args, &list, "token_id", token);
    arg_list_str(&m->st->args, &list, "token_id_hex", import_str(m->im, hex));
    arg_list_uint(&m->st->args, &list, "packet_ts", (uint64_t)e->packet_ts);
    for (size_t i = 0; i < values.n; i++)
        if (!vec_push(&list, values.p[i]))
            m->im->failed = true;
    slice_scoped(m->im->slices, m->id, ts, track_of(m, domain), 0, import_slice(m->im, slice_of(out.p, out.n)), 0,
                 args_intern(&m->st->args, list.p, list.n));
    arg_list_free(&values);
    arg_list_free(&list);
}

static void parse_events(void *owner, const struct sort_event *events, size_t n)
{
    struct modem *s = owner;
    for (size_t i = 0; i < n; i++)
        parse_event(s, events[i].ts, &s->events.p[events[i].a]);
}

static struct modem *modem_of(struct machine_ctx *m)
{
    struct modem *s = m->android->modem;
    if (s)
        return s;
    s = mem_zalloc(sizeof *s);
    if (s) {
        s->m = m;
        s->queue = sorter_add_queue(m->im->sorter, parse_events, s);
    }
    if (!s || s->queue == UINT32_MAX) {
        mem_free(s);
        m->im->failed = true;
        return NULL;
    }
    return m->android->modem = s;
}

static void keep_event(struct packet *p, struct modem *s, int64_t ts, struct slice bytes)
{
    if (bytes.len < 4)
        return; /* no token */
    void *copy = arena_alloc_bytes(&s->arena, bytes.len);
    if (copy)
        memcpy(copy, bytes.p, bytes.len);
    if (!copy || !vec_push(&s->events, (struct modem_event){slice_of(copy, bytes.len), p->ts}))
        p->m->im->failed = true;
    else
        sorter_push(p->m->im->sorter, s->queue, (struct sort_event){.ts = ts, .a = s->events.n - 1});
}

enum tokenize_result modem_events_tokenize(struct packet *p)
{
    struct modem *s = modem_of(p->m);
    struct pb_numbers times = pb_numbers(p->field, PIXEL_MODEM_EVENTS_EVENT_TIME_NANOS);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint64_t ts = 0, delta;
    while (s && pb_next(&c, &f)) {
        if (f.id != PIXEL_MODEM_EVENTS_EVENTS)
            continue;
        if (!pb_next_number(&times, &delta))
            break; /* events without a time */
        ts += delta;
        if ((int64_t)ts < 0)
            stats_add(&p->m->st->stats, p->m->id, STAT_pixel_modem_negative_timestamp, 1);
        else
            keep_event(p, s, (int64_t)ts, pb_bytes(&f));
    }
    return TOKENIZE_DONE;
}

/* --- the database --------------------------------------------------------------------------------------------------
 */

static void refuse(struct packet *p, const char *why)
{
    importer_fail(p->m->im, -MRD_EFORMAT, "packet at byte %lld: the token database of the modem %s",
                  (long long)p->byte_offset, why);
}

enum tokenize_result modem_database_tokenize(struct packet *p)
{
    struct modem *s = modem_of(p->m);
    struct pb_field f;
    if (!s || !pb_find(p->field, PIXEL_MODEM_TOKEN_DATABASE_DATABASE, &f))
        return TOKENIZE_DONE;
    struct slice db = pb_bytes(&f);
    if (db.len < HEAD_BYTES || memcmp(db.p, DATABASE_MAGIC, 8) != 0) {
        refuse(p, "does not begin as one (TOKENS)");
        return TOKENIZE_DONE;
    }
    uint64_t n = u32_at(db.p + 8);
    if (n > (db.len - HEAD_BYTES) / ROW_BYTES) {
        refuse(p, "is cut off: it has fewer rows than it says");
        return TOKENIZE_DONE;
    }
    const uint8_t *row = db.p + HEAD_BYTES, *text = row + n * ROW_BYTES, *end = db.p + db.len;
    for (uint64_t i = 0; i < n; i++, row += ROW_BYTES) {
        const uint8_t *stop = text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
        if (!stop) {
            refuse(p, "is cut off: it has fewer texts than rows");
            break;
        }
        if (u32_at(row + 4) == IN_USE &&
            !u64map_set(&s->texts, u32_at(row), import_slice(p->m->im, slice_of(text, (size_t)(stop - text)))))
            p->m->im->failed = true;
        text = stop + 1;
    }
    return TOKENIZE_DONE;
}
