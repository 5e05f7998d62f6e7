/* What the document says beside its events: metadata, and the kernel's trace as text. */
#include "importer/core/metadata.h"
#include "importer/json/chrome_json.h"
#include "importer/text/systrace.h"

/* The row of a metadata value: an integer, or a text. False when there is none, or it is malformed. */
static bool metadata_value(struct chrome *c, struct json_reader *r, int64_t *number, strid *text)
{
    struct strpool *strings = &c->im->st->strings;
    struct json_number n;
    struct json_text s;
    struct slice raw;
    int literal, first = json_peek(r);
    *number = COL_NULL;
    *text = 0;
    if (first == '"') {
        if (!json_string(r, &s))
            return false;
        *text = s.raw.len ? chrome_string(c, s) : import_str(c->im, "");
        return true;
    }
    if (first == '{' || first == '[') {
        if (!json_skip(r, &raw))
            return false;
        *text = import_slice(c->im, raw);
        return true;
    }
    if (first == '-' || (first >= '0' && first <= '9')) {
        if (!json_read_number(r, &n))
            return false;
        if (!json_number_i64(&n, true, number))
            *text = strpool_printf(strings, "%g", json_number_f64(&n));
        return true;
    }
    if (!json_literal(r, &literal))
        return false;
    if (literal >= 0)
        *number = literal;
    return true;
}

void chrome_document_metadata(struct chrome *c, struct slice object)
{
    struct json_reader r = json_reader(object);
    struct json_text key;
    r.lenient = true;
    if (!json_enter(&r, '{'))
        return;
    while (json_member(&r, &key)) {
        int64_t number;
        strid text;
        if (!metadata_value(c, &r, &number, &text))
            return;
        int next = json_peek(&r);
        if (next != ',' && next != '}')
            return;
        if (number == COL_NULL && !text)
            continue;
        strid name = chrome_string(c, key);
        struct strpool *strings = &c->im->st->strings;
        metadata_dynamic(c->im, c->m, strpool_printf(strings, "json_metadata.%s", strpool_cstr(strings, name)), number,
                         text);
    }
}

static bool to_trace_time(void *ctx, int64_t ns, int64_t *trace_ns)
{
    struct chrome *c = ctx;
    return file_clock_to_trace_time(&c->clock, ns, -1, trace_ns);
}

void chrome_system_trace(struct chrome *c, struct json_text text)
{
    char *plain = mem_alloc(text.raw.len ? text.raw.len : 1);
    if (!plain || (!c->system && !(c->system = systrace_open(c->im, to_trace_time, NULL, c, true)))) {
        mem_free(plain);
        c->im->failed = true;
        return;
    }
    size_t n = json_unescape(text, JSON_TOLERANT, plain);
    for (const char *p = plain, *end = plain + n, *lf; p < end && (lf = memchr(p, '\n', (size_t)(end - p)));
         p = lf + 1) {
        struct slice line = slice_of(p, (size_t)(lf - p));
        if (!line.len || line.p[0] == '#' || systrace_add_line(c->system, line))
            continue;
        chrome_text_error(c, c->placed, c->placed, "a line of systemTraceEvents is no line of ftrace");
    }
    mem_free(plain);
}
