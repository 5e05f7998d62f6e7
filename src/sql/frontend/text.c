/* Sources, frames, token lists, and the traceback that is made from them. */
#include "sql/frontend/text.h"

#include <stdio.h>

struct sql_source *sql_source_new(enum source_kind kind, const char *name, struct slice text)
{
    struct sql_source *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->kind = (uint8_t)kind;
    s->refs = 1;
    s->name = mem_strdup(name);
    s->text = mem_strndup((const char *)text.p, text.len);
    s->len = text.len;
    if (!s->name || !s->text) {
        sql_source_unref(s);
        return NULL;
    }
    return s;
}

struct sql_source *sql_source_ref(struct sql_source *s)
{
    s->refs++;
    return s;
}

void sql_source_unref(struct sql_source *s)
{
    if (!s || --s->refs > 0)
        return;
    mem_free(s->name);
    mem_free(s->text);
    mem_free(s);
}

static bool scan_one(struct sql_tokens *out, const char *text, size_t len, struct sql_frame *frame, size_t *at)
{
    struct sql_token *t = vec_reserve(out, out->n + 1) ? &out->p[out->n] : NULL;
    enum token_kind kind;
    if (!t)
        return false;
    size_t n = token_next(text + *at, len - *at, &kind);
    *t = (struct sql_token){text + *at, frame, (uint32_t)n, (uint32_t)*at, (uint8_t)kind, false};
    out->n++;
    *at += n;
    return true;
}

bool sql_tokens_scan_one(struct sql_tokens *out, struct sql_frame *frame, size_t *at)
{
    return scan_one(out, frame->source->text, frame->source->len, frame, at);
}

bool sql_tokens_scan(struct sql_tokens *out, struct sql_frame *frame)
{
    for (size_t at = 0; at < frame->source->len;)
        if (!sql_tokens_scan_one(out, frame, &at))
            return false;
    return true;
}

bool sql_tokens_scan_text(struct sql_tokens *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len;)
        if (!scan_one(out, text, len, NULL, &at))
            return false;
    return true;
}

bool sql_tokens_add_made(struct sql_tokens *out, const struct sql_token *at, const char *text)
{
    size_t from = 0, len = strlen(text), first = out->n;
    while (from < len)
        if (!scan_one(out, text, len, at->frame, &from))
            return false;
    for (; first < out->n; first++) {
        out->p[first].at = at->at;
        out->p[first].made = true;
    }
    return true;
}

bool sql_tokens_append(struct sql_tokens *out, const struct sql_token *p, size_t n)
{
    if (n == 0)
        return true;
    if (!vec_reserve(out, out->n + n))
        return false;
    memcpy(out->p + out->n, p, n * sizeof *p);
    out->n += n;
    return true;
}

void sql_tokens_free(struct sql_tokens *t)
{
    vec_free(t);
}

char *sql_tokens_join(struct arena *a, const struct sql_token *p, size_t n, size_t *len)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += p[i].len;
    char *text = arena_alloc_bytes(a, total + 1);
    if (!text)
        return NULL;
    char *to = text;
    for (size_t i = 0; i < n; i++) {
        memcpy(to, p[i].text, p[i].len);
        to += p[i].len;
    }
    *to = 0;
    *len = total;
    return text;
}

const char *sql_tokens_text(struct arena *a, const struct sql_token *p, size_t n, size_t *len)
{
    for (size_t i = 1; i < n; i++)
        if (p[i - 1].text + p[i - 1].len != p[i].text)
            return sql_tokens_join(a, p, n, len);
    *len = n ? (size_t)(p[n - 1].text + p[n - 1].len - p[0].text) : 0;
    return n ? p[0].text : "";
}

void sql_tokens_trim(const struct sql_token **p, size_t *n)
{
    while (*n && token_is_blank((*p)->kind)) {
        ++*p;
        --*n;
    }
    while (*n && token_is_blank((*p)[*n - 1].kind))
        --*n;
}

void sql_message_add(struct sql_message *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    m->failed = m->failed || n < 0 || !vec_reserve(m, m->n + (size_t)n + 1); /* no memory without a text in it */
    if (m->failed)
        return;
    va_start(ap, fmt);
    vsnprintf(m->p + m->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    m->n += (size_t)n;
}

enum { EXCERPT_BYTES = 128 }; /* of the line, at most, on either side of the place */

static void add_place(struct sql_message *m, const struct sql_frame *f, uint32_t at)
{
    static const char *const level[] = {"File", "Module include", "Macro"};
    const struct sql_source *s = f->source;
    if (at > s->len)
        at = (uint32_t)s->len;
    unsigned line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at; i++)
        if (s->text[i] == '\n') {
            line++;
            start = i + 1;
        }
    size_t end = at;
    while (end < s->len && s->text[end] != '\n')
        end++;
    size_t column = at - start;
    if (column > EXCERPT_BYTES)
        start = at - EXCERPT_BYTES;
    if (end - at > EXCERPT_BYTES)
        end = at + EXCERPT_BYTES;
    sql_message_add(m, "  %s \"%s\" line %u col %zu\n    %.*s\n    ", level[s->kind], s->name, line, column + 1,
                    (int)(end - start), s->text + start);
    for (size_t i = start; i < at; i++) /* tabs stay tabs, so that the caret stands below its place */
        if (((unsigned char)s->text[i] & 0xc0) != 0x80)
            sql_message_add(m, "%c", s->text[i] == '\t' ? '\t' : ' ');
    sql_message_add(m, "^\n");
}

enum { MAX_SHOWN_FRAMES = 24 };

void sql_message_add_frames(struct sql_message *m, const struct sql_frame *frame, uint32_t at)
{
    const struct sql_frame *chain[MAX_SHOWN_FRAMES];
    uint32_t place[MAX_SHOWN_FRAMES];
    size_t n = 0, skipped = 0;
    for (; frame; at = frame->call_at, frame = frame->parent) {
        if (n == MAX_SHOWN_FRAMES) { /* keep the inner half and the outermost */
            n--;
            skipped++;
        }
        chain[n] = frame;
        place[n++] = at;
    }
    while (n--) {
        add_place(m, chain[n], place[n]);
        if (n == MAX_SHOWN_FRAMES - 1 && skipped)
            sql_message_add(m, "  ... %zu more ...\n", skipped);
    }
}

void sql_traceback(struct sql_message *m, const struct sql_token *p, size_t n, int64_t offset, const char *text)
{
    size_t i = 0, expanded = 0, last = 0;
    int64_t at = 0;
    for (size_t k = 0; k < n; k++) {
        if (p[k].made || p[k].frame != p[0].frame)
            expanded = 1;
        if (!token_is_blank(p[k].kind))
            last = k;
    }
    if (offset < 0) {
        while (i < n && token_is_blank(p[i].kind))
            i++;
        offset = 0;
    } else {
        while (i < n && at + p[i].len <= offset)
            at += p[i++].len;
        offset -= at;
        if (i >= n) { /* "incomplete input": the end of what was written */
            i = last;
            offset = n ? p[last].len : 0;
        }
    }
    if (expanded) {
        sql_message_add(m, "Fully expanded statement\n");
        size_t k = 0;
        while (k < n && token_is_blank(p[k].kind))
            k++;
        for (; k <= last && k < n; k++)
            sql_message_add(m, "%.*s", (int)p[k].len, p[k].text);
        sql_message_add(m, "\n");
    }
    sql_message_add(m, "Traceback (most recent call last):\n");
    if (i < n)
        sql_message_add_frames(m, p[i].frame, p[i].at + (p[i].made ? 0 : (uint32_t)offset));
    sql_message_add(m, "%s", text);
}
