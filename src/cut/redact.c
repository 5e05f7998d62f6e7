/* Goes through the strings of packets by their schema, and writes them with pseudonyms. */
#include "cut/redact_internal.h"

#include "base/utf8.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/trace_fields.h"

#include <nettle/hmac.h>
#include <stdio.h>

enum { DEPTH_MAX = 64, COMM_MAX = 15, PSEUDONYM = 12, TRIES = 4, MAC_BYTES = SHA256_DIGEST_SIZE };

struct redactor {
    struct redact_rules rules;
    struct strpool seen;     /* strings that rules were asked about */
    VEC(uint8_t) seen_kinds; /* by id */
    struct strpool texts;    /* the secrets */
    VEC(struct secret {
        strid text; /* that its pseudonym is made of */
        uint32_t rule;
    }) secrets;
    struct redact_search search;
    struct strpool pseudonyms; /* what pseudonyms were made of; by id */
    VEC(char) names;           /* PSEUDONYM bytes an id */
    struct redact_ranges ranges;
    struct redact_counts counts;
    bool failed; /* out of memory */
};

/* ---- which strings are what ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* `around` is the field that holds the message; NULL where the schema ends. */
static uint32_t kinds_of(const struct trace_message *m, const struct trace_field *f, const struct trace_field *around)
{
    uint32_t kinds = REDACT_STRING;
    if (!f)
        return kinds | REDACT_ARG;
    if (strcmp(f->name, "cmdline") == 0)
        return kinds | REDACT_COMMAND_LINE;
    if (ends_with(f->name, "name") || ends_with(f->name, "comm") || strcmp(f->name, "intern_table") == 0)
        kinds |= REDACT_NAME;
    if (!m->name) /* of a kernel event */
        return kinds | REDACT_ARG;
    if (strcmp(m->name, "DebugAnnotation") == 0 && f->type == TRACE_TYPE_STRING)
        return ends_with(f->name, "name") ? kinds : kinds | REDACT_ARG;
    if (strcmp(m->name, "InternedString") == 0 && around)
        kinds |= strcmp(around->name, "debug_annotation_string_values") == 0 ? REDACT_ARG : REDACT_NAME;
    return kinds;
}

static bool is_text(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] < 0x20 && s.p[i] != '\t' && s.p[i] != '\n')
            return false;
    return utf8_prefix((const char *)s.p, s.len) == s.len;
}

/* ---- what rules match ---- */

static void add_secret(struct redactor *r, struct slice text, uint32_t rule, enum redact_where where, struct slice of)
{
    strid id = strpool_intern(&r->texts, of.p, of.len);
    if (!id || !vec_push(&r->secrets, (struct secret){id, rule})) {
        r->failed = true;
        return;
    }
    redact_search_add(&r->search, text, (uint32_t)(r->secrets.n - 1), where);
}

static bool is_number(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return true;
}

/* A short secret is a word by itself; digits alone are pids and values in longer strings. */
static enum redact_where where_of(struct slice text, uint32_t kinds)
{
    if (!(kinds & REDACT_TEXT) && is_number(text))
        return REDACT_WHOLE;
    return text.len < REDACT_SHORT ? REDACT_WORD : REDACT_ANYWHERE;
}

static void add_match(struct redactor *r, struct slice text, uint32_t kinds, uint32_t rule)
{
    if (!text.len)
        return;
    add_secret(r, text, rule, where_of(text, kinds), text);
    if ((kinds & REDACT_NAME) && text.len > COMM_MAX) /* the kernel knows so much of it */
        add_secret(r, slice_of(text.p, COMM_MAX), rule, REDACT_WHOLE, text);
    r->counts.strings++;
}

static void ask(struct redactor *r, struct slice text, uint32_t kinds)
{
    strid id = strpool_intern(&r->seen, text.p, text.len);
    while (id && r->seen_kinds.n <= id)
        if (!vec_push(&r->seen_kinds, 0))
            id = 0;
    if (!id) {
        r->failed = true;
        return;
    }
    kinds &= ~(uint32_t)r->seen_kinds.p[id];
    r->seen_kinds.p[id] |= (uint8_t)kinds;
    for (uint32_t i = 0; kinds && i < r->rules.rules.n; i++) {
        const struct redact_rule *rule = &r->rules.rules.p[i];
        if ((rule->kind & kinds) && redact_matches(rule->pattern, text))
            add_match(r, text, kinds, i);
    }
}

/* A marker of atrace: "B|pid|name", "C|pid|name|value". */
static void ask_marker(struct redactor *r, struct slice s)
{
    const uint8_t *p = s.len > 2 && s.p[1] == '|' ? memchr(s.p + 2, '|', s.len - 2) : NULL;
    if (!p)
        return;
    const uint8_t *end = s.p + s.len;
    for (const uint8_t *from = ++p; p <= end; p++)
        if (p == end || *p == '|' || *p == '\n') {
            struct slice part = slice_of(from, (size_t)(p - from));
            if (!is_number(part))
                ask(r, part, REDACT_NAME | REDACT_STRING);
            from = p + 1;
        }
}

static void ask_field(struct redactor *r, struct slice text, uint32_t kinds, const struct trace_field *f)
{
    ask(r, text, kinds);
    if (f && strcmp(f->name, "buf") == 0)
        ask_marker(r, text);
}

/* A process is named by the first of its arguments. What a rule says of a whole line goes for all but that one. */
static void ask_command_line(struct redactor *r, struct slice message, uint32_t field)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct pb_writer line = {0};
    bool first = true;
    while (pb_next(&c, &f)) {
        if (f.id != field || f.wire != PB_BYTES)
            continue;
        struct slice arg = pb_bytes(&f);
        ask(r, arg, REDACT_COMMAND_LINE | REDACT_STRING | (first ? (uint32_t)REDACT_NAME : 0));
        pb_put_raw(&line, " ", first ? 0 : 1);
        pb_put_raw(&line, arg.p, arg.len);
        first = false;
    }
    for (uint32_t i = 0; i < r->rules.rules.n; i++) {
        const struct redact_rule *rule = &r->rules.rules.p[i];
        if (rule->kind != REDACT_COMMAND_LINE || !redact_matches(rule->pattern, pb_written(&line)))
            continue;
        first = true;
        for (c = pb_cursor(message); pb_next(&c, &f);)
            if (f.id == field && f.wire == PB_BYTES) {
                struct slice arg = pb_bytes(&f);
                if (!first && arg.len >= REDACT_SHORT)
                    add_match(r, arg, REDACT_COMMAND_LINE, i);
                first = false;
            }
    }
    r->failed |= line.failed;
    pb_writer_free(&line);
}

/* The message behind a field, NULL when its fields are not known. */
static const struct trace_message *message_of(const struct trace_field *f)
{
    const struct trace_message *m = f && f->type == TRACE_TYPE_MESSAGE ? trace_field_message(f) : NULL;
    return m && m->n_fields ? m : NULL;
}

static bool is_string(const struct trace_field *f, struct slice bytes)
{
    return f ? f->type == TRACE_TYPE_STRING || (f->type == TRACE_TYPE_BYTES && is_text(bytes)) : is_text(bytes);
}

static bool is_packed(const struct trace_field *f)
{
    return f && f->type != TRACE_TYPE_MESSAGE && f->type != TRACE_TYPE_STRING && f->type != TRACE_TYPE_BYTES;
}

static void gather(struct redactor *r, const struct trace_message *m, const struct trace_field *around,
                   struct slice bytes, unsigned depth)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint32_t asked = 0;
    while (depth < DEPTH_MAX && pb_next(&c, &f)) {
        const struct trace_field *tf = m ? trace_field_by_number(m, f.id) : NULL;
        struct slice inside = pb_bytes(&f);
        if (f.wire != PB_BYTES || is_packed(tf))
            continue;
        if (message_of(tf)) {
            gather(r, message_of(tf), tf, inside, depth + 1);
        } else if (is_string(tf, inside)) {
            uint32_t kinds = kinds_of(m, tf, around);
            if (!(kinds & REDACT_COMMAND_LINE))
                ask_field(r, inside, kinds, tf);
            else if (asked != f.id)
                ask_command_line(r, bytes, asked = f.id);
        } else {
            gather(r, NULL, NULL, inside, depth + 1);
        }
    }
}

/* ---- pseudonyms ---- */

static void mac_of(const struct redactor *r, struct slice text, uint64_t attempt, uint8_t mac[MAC_BYTES])
{
    struct hmac_sha256_ctx ctx;
    hmac_sha256_set_key(&ctx, r->rules.key_len, r->rules.key);
    hmac_sha256_update(&ctx, text.len, text.p);
    if (attempt)
        hmac_sha256_update(&ctx, sizeof attempt, (const uint8_t *)&attempt);
    hmac_sha256_digest(&ctx, MAC_BYTES, mac);
}

/* "x" and hex digits, as many as there is room for. */
static void spell(const uint8_t mac[MAC_BYTES], char *to, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        size_t k = (i - 1) % (2 * MAC_BYTES);
        to[i] = i == 0 ? 'x' : digits[(mac[k / 2] >> (k % 2 ? 0 : 4)) & 15];
    }
}

/* The pseudonym of a text, PSEUDONYM bytes; no other secret is in it. */
static const char *pseudonym(struct redactor *r, struct slice text)
{
    char name[PSEUDONYM];
    uint8_t mac[MAC_BYTES];
    strid id = strpool_intern(&r->pseudonyms, text.p, text.len);
    size_t at = (size_t)id * PSEUDONYM;
    if (id && r->names.n > at)
        return r->names.p + at;
    for (uint64_t attempt = 0; attempt < TRIES; attempt++) {
        mac_of(r, text, attempt, mac);
        spell(mac, name, sizeof name);
        if (!redact_search_any(&r->search, slice_of(name, sizeof name)))
            break;
    }
    if (!id || !vec_reserve(&r->names, at + PSEUDONYM)) {
        r->failed = true;
        return NULL;
    }
    memcpy(r->names.p + at, name, PSEUDONYM);
    r->names.n = at + PSEUDONYM;
    return r->names.p + at;
}

static void count(struct redactor *r, const struct redact_range *range)
{
    r->rules.rules.p[r->secrets.p[range->secret].rule].used = true;
    r->counts.replaced++;
}

/* Appends the string with what is in `r->ranges` replaced. */
static void put_replaced(struct redactor *r, struct slice text, struct pb_writer *out)
{
    size_t done = 0;
    for (size_t i = 0; i < r->ranges.ranges.n; i++) {
        const struct redact_range *range = &r->ranges.ranges.p[i];
        struct slice of = slice_of(text.p + range->from, range->to - range->from);
        if (!range->merged)
            of = strpool_view(&r->texts, r->secrets.p[range->secret].text);
        const char *name = pseudonym(r, of);
        pb_put_raw(out, text.p + done, range->from - done);
        if (name)
            pb_put_raw(out, name, PSEUDONYM);
        count(r, range);
        done = range->to;
    }
    pb_put_raw(out, text.p + done, text.len - done);
}

static bool find(struct redactor *r, struct slice text, bool opaque)
{
    if (!redact_search_all(&r->search, text, opaque, &r->ranges))
        r->failed = true;
    return r->ranges.ranges.n > 0;
}

static void put_string(struct redactor *r, uint32_t id, struct slice text, struct pb_writer *out)
{
    if (!find(r, text, false)) {
        pb_put_bytes(out, id, text.p, text.len);
        return;
    }
    size_t mark = pb_begin(out, id), from = out->n;
    put_replaced(r, text, out);
    /* What was beside a secret can be the begin of another one with its pseudonym. */
    if (!out->failed && find(r, slice_of(out->p + from, out->n - from), false)) {
        const char *name = pseudonym(r, text);
        out->n = from;
        if (name)
            pb_put_raw(out, name, PSEUDONYM);
    }
    pb_end(out, mark);
}

/* Bytes whose meaning is not known keep their length. */
static void put_opaque(struct redactor *r, uint32_t id, struct slice bytes, struct pb_writer *out)
{
    uint8_t mac[MAC_BYTES];
    pb_put_bytes(out, id, bytes.p, bytes.len);
    if (out->failed || !find(r, bytes, true))
        return;
    uint8_t *copy = out->p + out->n - bytes.len;
    for (size_t i = 0; i < r->ranges.ranges.n; i++) {
        const struct redact_range *range = &r->ranges.ranges.p[i];
        mac_of(r, slice_of(bytes.p + range->from, range->to - range->from), 0, mac);
        spell(mac, (char *)copy + range->from, range->to - range->from);
        count(r, range);
    }
}

static void put_message(struct redactor *r, const struct trace_message *m, struct slice bytes, unsigned depth,
                        struct pb_writer *out)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    for (const uint8_t *from = c.p; pb_next(&c, &f); from = c.p) {
        const struct trace_field *tf = trace_field_by_number(m, f.id);
        struct slice inside = pb_bytes(&f);
        if (depth == 0 &&
            f.id == TRACE_PACKET_COMPRESSED_PACKETS) /* could not be unpacked, so nobody knows what is in */
            continue;
        if (f.wire != PB_BYTES || is_packed(tf) || !redact_search_any(&r->search, inside)) {
            pb_put_raw(out, from, (size_t)(c.p - from));
        } else if (message_of(tf) && depth < DEPTH_MAX) {
            size_t mark = pb_begin(out, f.id);
            put_message(r, message_of(tf), inside, depth + 1, out);
            pb_end(out, mark);
        } else if (tf && is_string(tf, inside)) {
            put_string(r, f.id, inside, out);
        } else {
            put_opaque(r, f.id, inside, out);
        }
    }
}

/* ---- the whole ---- */

int redactor_open(struct redactor **out, const char *rules, struct error *err)
{
    struct redactor *r = mem_alloc(sizeof *r);
    *out = NULL;
    if (!r)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    *r = (struct redactor){0};
    int rc = redact_rules_parse(&r->rules, rules, err);
    for (uint32_t i = 0; rc == 0 && i < r->rules.rules.n; i++)
        if (r->rules.rules.p[i].kind == REDACT_TEXT)
            add_match(r, r->rules.rules.p[i].pattern, REDACT_TEXT, i);
    if (rc < 0) {
        redactor_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

void redactor_gather(struct redactor *r, struct slice packet)
{
    gather(r, trace_message_by_name("TracePacket"), NULL, packet, 0);
}

int redactor_ready(struct redactor *r, struct error *err)
{
    redact_search_ready(&r->search);
    strpool_free(&r->seen);
    r->seen = (struct strpool){0};
    vec_free(&r->seen_kinds);
    return r->failed || r->search.failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

void redactor_write(struct redactor *r, struct slice packet, struct pb_writer *out)
{
    put_message(r, trace_message_by_name("TracePacket"), packet, 0, out);
    out->failed |= r->failed;
}

struct redact_counts redactor_counts(const struct redactor *r)
{
    struct redact_counts n = r->counts;
    for (size_t i = 0; i < r->rules.rules.n; i++) {
        if (r->rules.rules.p[i].used)
            continue;
        n.unmatched_at = n.unmatched++ ? n.unmatched_at : r->rules.rules.p[i].line;
    }
    return n;
}

void redactor_close(struct redactor *r)
{
    if (!r)
        return;
    redact_rules_free(&r->rules);
    redact_search_free(&r->search);
    strpool_free(&r->seen);
    strpool_free(&r->texts);
    strpool_free(&r->pseudonyms);
    vec_free(&r->seen_kinds);
    vec_free(&r->secrets);
    vec_free(&r->names);
    vec_free(&r->ranges.ranges);
    mem_free(r);
}
