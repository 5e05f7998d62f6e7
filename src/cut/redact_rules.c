/* Reads the rules of redaction. */
#include "cut/redact_internal.h"

#include <errno.h>
#include <sys/random.h>

enum { RULES_MAX = 10000, PATTERN_MAX = 4096 };

static const struct {
    const char *name;
    uint32_t kind; /* 0: the key */
} kinds[] = {{"name", REDACT_NAME},     {"arg", REDACT_ARG},   {"command-line", REDACT_COMMAND_LINE},
             {"string", REDACT_STRING}, {"text", REDACT_TEXT}, {"key", 0}};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct slice trimmed(struct slice s)
{
    while (s.len && is_blank(s.p[0]))
        s = slice_of(s.p + 1, s.len - 1);
    while (s.len && is_blank(s.p[s.len - 1]))
        s.len--;
    return s;
}

static int set_key(struct redact_rules *r, struct slice key, uint32_t line, struct error *err)
{
    if (r->key_len)
        return error_set(err, -MRD_EINVALID, "line %u: a second key: leave one of them out", line);
    if (key.len > REDACT_KEY_MAX)
        return error_set(err, -MRD_EINVALID, "line %u: the key is longer than %d bytes", line, REDACT_KEY_MAX);
    memcpy(r->key, key.p, key.len);
    r->key_len = key.len;
    return 0;
}

static int add_rule(struct redact_rules *r, uint32_t kind, struct slice pattern, uint32_t line, struct error *err)
{
    if (pattern.len > PATTERN_MAX)
        return error_set(err, -MRD_EINVALID, "line %u: the pattern is longer than %d bytes", line, PATTERN_MAX);
    if (r->rules.n == RULES_MAX)
        return error_set(err, -MRD_EINVALID, "line %u: more than %d rules", line, RULES_MAX);
    if (!vec_push(&r->rules, (struct redact_rule){kind, line, pattern, false}))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

static int parse_line(struct redact_rules *r, struct slice s, uint32_t line, struct error *err)
{
    size_t n = 0;
    s = trimmed(s);
    if (!s.len || s.p[0] == '#')
        return 0;
    while (n < s.len && !is_blank(s.p[n]))
        n++;
    struct slice word = slice_of(s.p, n), rest = trimmed(slice_of(s.p + n, s.len - n));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!slice_eq_str(word, kinds[i].name))
            continue;
        if (!rest.len)
            return error_set(err, -MRD_EINVALID, "line %u: nothing behind '%s'", line, kinds[i].name);
        return kinds[i].kind ? add_rule(r, kinds[i].kind, rest, line, err) : set_key(r, rest, line, err);
    }
    return error_set(err, -MRD_EINVALID,
                     "line %u: unknown kind '%.*s': a rule is name, arg, command-line, string or text, and a pattern "
                     "(name nginx*)",
                     line, (int)(n < 40 ? n : 40), (const char *)s.p);
}

static int random_key(struct redact_rules *r, struct error *err)
{
    enum { RANDOM_KEY = 32 };
    if (getrandom(r->key, RANDOM_KEY, 0) != RANDOM_KEY)
        return error_set_errno(err, errno, "no random key: give one, as the rule key TEXT");
    r->key_len = RANDOM_KEY;
    return 0;
}

int redact_rules_parse(struct redact_rules *r, const char *text, struct error *err)
{
    const size_t len = strlen(text);
    int rc = 0;
    *r = (struct redact_rules){.text = mem_alloc(len + 1)};
    if (!r->text)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    memcpy(r->text, text, len + 1);
    uint32_t line = 1;
    for (const char *p = r->text; rc == 0 && *p; line++) {
        size_t n = strcspn(p, "\n");
        rc = parse_line(r, slice_of(p, n), line, err);
        p += n + (p[n] == '\n');
    }
    if (rc == 0 && !r->rules.n)
        rc = error_set(err, -MRD_EINVALID, "no rules: a line is e.g. name nginx*");
    if (rc == 0 && !r->key_len)
        rc = random_key(r, err);
    if (rc < 0)
        redact_rules_free(r);
    return rc;
}

void redact_rules_free(struct redact_rules *r)
{
    vec_free(&r->rules);
    mem_free(r->text);
    *r = (struct redact_rules){0};
}

bool redact_matches(struct slice pattern, struct slice text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.p[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.len && (pattern.p[p] == '?' || pattern.p[p] == text.p[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.p[p] == '*')
        p++;
    return p == pattern.len;
}
