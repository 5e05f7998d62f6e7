/* Decides which system calls and which printed texts a session keeps. */
#include "kernel/event_filter.h"

/* Takes `prefix` off the front. */
static bool skip(struct slice *text, const char *prefix)
{
    size_t n = strlen(prefix);
    if (n > text->len || memcmp(text->p, prefix, n) != 0)
        return false;
    *text = slice_of(text->p + n, text->len - n);
    return true;
}

/* Takes everything up to and with the next bar off. */
static bool skip_bar(struct slice *text)
{
    const uint8_t *bar = text->len ? memchr(text->p, '|', text->len) : NULL;
    if (!bar)
        return false;
    size_t n = (size_t)(bar - text->p) + 1;
    *text = slice_of(text->p + n, text->len - n);
    return true;
}

static bool matches(const struct print_rule *r, struct slice text)
{
    if (r->type) { /* TYPE|PID|PREFIX… */
        if (*r->type ? !skip(&text, r->type) || !skip(&text, "|") : !skip_bar(&text))
            return false;
        if (!skip_bar(&text))
            return false;
    }
    return skip(&text, r->prefix);
}

bool print_rules_allow(const struct print_rule *rules, size_t n, struct slice text)
{
    for (size_t i = 0; i < n; i++)
        if (matches(&rules[i], text))
            return rules[i].allow;
    return true;
}

bool event_filter_keeps(const struct event_filter *f, const uint8_t *event, uint32_t size)
{
    uint64_t call;
    if (!f->calls)
        return f->offset > size ||
               print_rules_allow(f->rules, f->n_rules, slice_of(event + f->offset, size - f->offset));
    if (f->offset + sizeof call > size)
        return true;
    memcpy(&call, event + f->offset, sizeof call);
    return call_set_has(f->calls, call);
}
