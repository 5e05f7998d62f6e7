/* Splits ARGS of an event as text into words. */
#include "importer/ftrace/line_internal.h"
#include "importer/lines/line_reader.h"

/* key=value at '='; of several parts the first is the key and the last the value, empty ones vanish. */
static struct line_word read_word(struct slice token)
{
    struct slice first = {0}, last = {0};
    unsigned parts = 0;
    for (size_t at = 0; at <= token.len;) {
        const uint8_t *equals = at < token.len ? memchr(token.p + at, '=', token.len - at) : NULL;
        size_t end = equals ? (size_t)(equals - token.p) : token.len;
        if (end > at) {
            last = slice_of(token.p + at, end - at);
            if (!parts++)
                first = last;
        }
        at = end + 1;
    }
    if (parts == 1)
        return (struct line_word){.value = first};
    return (struct line_word){.key = first, .value = last};
}

void line_args_split(struct line_args *a, struct slice text)
{
    const uint8_t *p = text.p, *end = text.p + text.len;
    struct line_word *last = NULL;
    a->text = text;
    a->n = 0;
    while (a->n < sizeof a->words / sizeof *a->words) {
        while (p < end && *p == ' ')
            p++;
        if (p == end)
            return;
        const uint8_t *space = memchr(p, ' ', (size_t)(end - p));
        struct slice token = slice_of(p, (size_t)((space ? space : end) - p));
        p = token.p + token.len;
        struct line_word w = read_word(token);
        if (!w.value.len) { /* nothing but '=' */
            last = NULL;
            continue;
        }
        w.whole = w.value;
        if (w.key.len) {
            const uint8_t *value = w.key.p + w.key.len + 1;
            w.whole = slice_of(value, (size_t)(p - value));
        }
        if (!w.key.len && last && !slice_eq_str(token, "==>"))
            last->whole.len = (size_t)(p - last->whole.p);
        a->words[a->n++] = w;
        last = w.key.len ? &a->words[a->n - 1] : last && slice_eq_str(token, "==>") ? NULL : last;
    }
}

const struct line_word *line_word(const struct line_args *a, const char *key)
{
    size_t len = strlen(key);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->words[i].key.len == len && memcmp(a->words[i].key.p, key, len) == 0)
            return &a->words[i];
    return NULL;
}

struct slice line_text(const struct line_args *a, const char *key)
{
    const struct line_word *w = line_word(a, key);
    return w ? w->value : slice_of("", 0);
}

bool line_i64(const struct line_args *a, const char *key, int64_t *value)
{
    const struct line_word *w = line_word(a, key);
    return w && number_decimal(w->value, value);
}

bool line_i32(const struct line_args *a, const char *key, int32_t *value)
{
    int64_t v;
    if (!line_i64(a, key, &v) || v < INT32_MIN || v > UINT32_MAX)
        return false;
    *value = (int32_t)v;
    return true;
}

bool line_real(const struct line_args *a, const char *key, double *value)
{
    const struct line_word *w = line_word(a, key);
    int64_t whole;
    if (w && w->value.len < 16 && number_decimal(w->value, &whole)) {
        *value = (double)whole;
        return true;
    }
    return w && number_real(w->value, value);
}

bool line_hex(const struct line_args *a, const char *key, uint32_t *value)
{
    const struct line_word *w = line_word(a, key);
    uint64_t v;
    if (!w || !number_hex(w->value, &v))
        return false;
    *value = (uint32_t)v;
    return true;
}

/* The order of the letters in a text of several. */
static const char state_letters[] = "SDTtXZPxKWNI";

strid line_task_state(const struct ftrace_event *e, struct slice text)
{
    enum { MAX_LETTERS = 3 };
    bool has[sizeof state_letters] = {false};
    char out[MAX_LETTERS + 1];
    size_t n = 0;
    if (text.len && text.p[0] == 'R')
        return ftrace_text(e, text.len == 2 && text.p[1] == '+' ? "R+" : "R");
    for (size_t i = 0; i < text.len; i++) {
        const char *letter = text.p[i] ? strchr(state_letters, text.p[i]) : NULL;
        if (text.p[i] != '|' && !letter)
            return ftrace_text(e, "SDT");
        if (letter)
            has[letter - state_letters] = true;
    }
    if (!text.len)
        return ftrace_text(e, "SDT");
    for (size_t i = 0; i < sizeof state_letters - 1 && n < MAX_LETTERS; i++)
        if (has[i])
            out[n++] = state_letters[i];
    if (!n)
        return ftrace_text(e, "R");
    out[n] = 0;
    if (strcmp(out, "DN") == 0) /* uninterruptible without load: idle */
        return ftrace_text(e, "I");
    return ftrace_text(e, out);
}
