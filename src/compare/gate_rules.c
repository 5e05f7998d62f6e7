/* Reads the rules of a gate. */
#include "compare/gate_rules.h"

#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RULES = 1000, MAX_DEPTH = 64, MAX_TEXT = 1 << 20, WORD = 64, MAX_NODES = 256 /* of a rule */ };

struct parser {
    struct gate_rules *out;
    const char *p, *end;
    unsigned line, depth;
    bool baseline; /* the rule names it */
    size_t first;  /* node of the rule */
    struct error *err;
};

static int fail(struct parser *p, const char *what, const char *detail)
{
    return error_set(p->err, -MRD_EINVALID, "line %u: %s%s", p->line, what, detail);
}

/* Passes over blanks and comments; over the ends of lines within parentheses. */
static void skip(struct parser *p)
{
    for (; p->p < p->end; p->p++) {
        if (*p->p == '#')
            while (p->p + 1 < p->end && p->p[1] != '\n')
                p->p++;
        else if (*p->p == '\n' && !p->depth)
            return;
        else if (!isspace((unsigned char)*p->p))
            return;
        else
            p->line += *p->p == '\n';
    }
}

static bool take(struct parser *p, char c)
{
    skip(p);
    if (p->p >= p->end || *p->p != c)
        return false;
    p->p++;
    return true;
}

/* The word that comes next, "" when none does. */
static void word(struct parser *p, char out[WORD])
{
    size_t n = 0;
    skip(p);
    if (p->p < p->end && (isalpha((unsigned char)*p->p) || *p->p == '_'))
        for (; p->p < p->end && (isalnum((unsigned char)*p->p) || *p->p == '_' || (n && *p->p == '.')); p->p++)
            if (n + 1 < WORD)
                out[n++] = *p->p;
    out[n] = 0;
}

static int push(struct parser *p, struct gate_node n, uint32_t *node)
{
    *node = (uint32_t)p->out->nodes.n;
    if (p->out->nodes.n - p->first >= MAX_NODES)
        return fail(p, "the rule is too long", "");
    return vec_push(&p->out->nodes, n) ? 0 : error_set(p->err, -MRD_ENOMEM, "out of memory");
}

static int number(struct parser *p, uint32_t *node)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char text[WORD], unit[WORD];
    size_t n = 0;
    for (; p->p < p->end && n + 1 < sizeof text && (isdigit((unsigned char)*p->p) || *p->p == '.'); p->p++)
        text[n++] = *p->p;
    text[n] = 0;
    char *stop;
    double v = strtod(text, &stop);
    if (!n || *stop || n + 1 == sizeof text)
        return fail(p, "this is not a number: ", text);
    if (p->p < p->end && *p->p == '%') {
        p->p++;
        return push(p, (struct gate_node){.kind = GATE_NUMBER, .number = v / 100}, node);
    }
    unit[0] = 0;
    if (p->p < p->end && isalpha((unsigned char)*p->p))
        word(p, unit);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, unit) == 0)
            return push(p, (struct gate_node){.kind = GATE_NUMBER, .number = v * units[i].factor}, node);
    return fail(p, "units are ns, us, ms, s and %, not ", unit);
}

/* "p99", "p99.9"; false: it is none. */
static bool quantile_name(const char *name, double *q)
{
    char *stop;
    if (name[0] != 'p' || !isdigit((unsigned char)name[1]))
        return false;
    *q = strtod(name + 1, &stop) / 100;
    return !*stop && *q >= 0 && *q <= 1;
}

static int function_of(struct parser *p, const char *name, struct gate_node *n)
{
    static const struct {
        const char *name;
        enum gate_function function;
        double quantile;
    } functions[] = {{"count", GATE_COUNT, 0}, {"sum", GATE_SUM, 0},   {"min", GATE_MIN, 0},
                     {"max", GATE_MAX, 0},     {"mean", GATE_MEAN, 0}, {"median", GATE_QUANTILE, 0.5}};
    n->kind = GATE_ROWS;
    n->function = GATE_QUANTILE;
    if (quantile_name(name, &n->quantile))
        return 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0) {
            n->function = functions[i].function;
            n->quantile = functions[i].quantile;
            return 0;
        }
    return error_set(p->err, -MRD_EINVALID,
                     "line %u: '%s' is not known: a rule is made of numbers, baseline, loss, clock_error, and count, "
                     "sum, min, max, mean, median, p50 to p99.9 of a source in parentheses",
                     p->line, name);
}

static int source_of(struct parser *p, struct gate_node *n)
{
    char name[WORD], hint[80], list[256];
    size_t at = 0;
    word(p, name);
    struct suggestion s = suggest(name, strlen(name));
    for (size_t i = 0; i < n_gate_sources; i++) {
        if (strcmp(gate_sources[i].name, name) == 0) {
            n->source = &gate_sources[i];
            return 0;
        }
        suggest_among(&s, gate_sources[i].name);
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", gate_sources[i].name);
    }
    return error_set(p->err, -MRD_EINVALID, "line %u: '%s' is not a source%s; there are %s", p->line, name,
                     suggest_text(&s, "", hint, sizeof hint), list);
}

/* The condition up to the parenthesis that closes the function, which is taken, too. */
static int condition(struct parser *p, struct gate_node *n)
{
    skip(p);
    const char *from = p->p;
    unsigned open = 0;
    char quote = 0;
    for (; p->p < p->end; p->p++) {
        char c = *p->p;
        p->line += c == '\n';
        if (quote) {
            quote = c == quote ? 0 : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == '(') {
            open++;
        } else if (c == ')' && open-- == 0) {
            size_t len = (size_t)(p->p - from);
            while (len && isspace((unsigned char)from[len - 1]))
                len--;
            if (!len)
                return fail(p, "a condition is missing behind where", "");
            p->p++;
            n->where = arena_strndup(&p->out->arena, from, len);
            return n->where ? 0 : error_set(p->err, -MRD_ENOMEM, "out of memory");
        }
    }
    return fail(p, quote ? "a quote is not closed" : "a ')' is missing", "");
}

static int function(struct parser *p, const char *name, uint32_t *node)
{
    struct gate_node n = {0};
    char next[WORD];
    int rc = function_of(p, name, &n);
    if (rc < 0)
        return rc;
    if (!take(p, '('))
        return fail(p, "'(' and a source are missing behind ", name);
    p->depth++;
    rc = source_of(p, &n);
    if (rc == 0 && !take(p, ')')) {
        word(p, next);
        if (strcmp(next, "where") != 0)
            rc = fail(p, "'where' or ')' is missing behind ", n.source->name);
        else
            rc = condition(p, &n);
    }
    p->depth--;
    return rc < 0 ? rc : push(p, n, node);
}

static int sum(struct parser *p, uint32_t *node);

static int factor(struct parser *p, uint32_t *node)
{
    char name[WORD];
    int rc;
    if (p->depth >= MAX_DEPTH)
        return fail(p, "parentheses are nested too deep", "");
    skip(p);
    if (p->p < p->end && isdigit((unsigned char)*p->p))
        return number(p, node);
    if (take(p, '(')) {
        p->depth++;
        rc = sum(p, node);
        if (rc == 0 && !take(p, ')'))
            rc = fail(p, "a ')' is missing", "");
        p->depth--;
        return rc;
    }
    if (take(p, '-')) {
        uint32_t zero, right;
        p->depth++;
        rc = push(p, (struct gate_node){.kind = GATE_NUMBER}, &zero);
        rc = rc < 0 ? rc : factor(p, &right);
        p->depth--;
        return rc < 0 ? rc
                      : push(p, (struct gate_node){.kind = GATE_CALCULATED, .op = '-', .left = zero, .right = right},
                             node);
    }
    word(p, name);
    if (!*name)
        return fail(p, "a number, a function, baseline, loss or clock_error is missing", "");
    if (strcmp(name, "baseline") == 0) {
        p->baseline = true;
        return push(p, (struct gate_node){.kind = GATE_BASELINE}, node);
    }
    if (strcmp(name, "loss") == 0)
        return push(p, (struct gate_node){.kind = GATE_LOSS}, node);
    if (strcmp(name, "clock_error") == 0)
        return push(p, (struct gate_node){.kind = GATE_CLOCK_ERROR}, node);
    return function(p, name, node);
}

/* A row of operands of `next` with one of two operators between them. */
static int chain(struct parser *p, const char *ops, int (*next)(struct parser *p, uint32_t *node), uint32_t *node)
{
    int rc = next(p, node);
    while (rc == 0) {
        char op = take(p, ops[0]) ? ops[0] : take(p, ops[1]) ? ops[1] : 0;
        uint32_t right;
        if (!op)
            break;
        rc = next(p, &right);
        if (rc == 0)
            rc = push(p, (struct gate_node){.kind = GATE_CALCULATED, .op = op, .left = *node, .right = right}, node);
    }
    return rc;
}

static int product(struct parser *p, uint32_t *node)
{
    return chain(p, "*/", factor, node);
}

static int sum(struct parser *p, uint32_t *node)
{
    return chain(p, "+-", product, node);
}

static int comparison(struct parser *p, enum gate_compare *c)
{
    static const struct {
        const char *text;
        enum gate_compare compare;
    } all[] = {{"<=", GATE_LE}, {"<", GATE_LT}, {">=", GATE_GE}, {">", GATE_GT},
               {"==", GATE_EQ}, {"=", GATE_EQ}, {"!=", GATE_NE}, {"<>", GATE_NE}};
    size_t best = 0;
    skip(p);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i].text);
        if (n > best && (size_t)(p->end - p->p) >= n && memcmp(p->p, all[i].text, n) == 0) {
            best = n;
            *c = all[i].compare;
        }
    }
    p->p += best;
    return best ? 0 : fail(p, "a comparison is missing: one of <= < >= > = !=", "");
}

/* The text with one blank for each run of them, outside of quotes, and without comments. */
static const char *tidied(struct parser *p, const char *from, const char *to)
{
    char *out = arena_alloc_bytes(&p->out->arena, (size_t)(to - from) + 1);
    size_t n = 0;
    char quote = 0;
    if (!out)
        return NULL;
    for (; from < to; from++) {
        if (!quote && *from == '#') {
            while (from < to && *from != '\n')
                from++;
            from--;
            continue;
        }
        quote = quote ? (*from == quote ? 0 : quote) : *from == '\'' || *from == '"' ? *from : 0;
        if (!quote && isspace((unsigned char)*from)) {
            if (n && out[n - 1] != ' ')
                out[n++] = ' ';
        } else {
            out[n++] = *from ? *from : '?';
        }
    }
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = 0;
    return out;
}

static int rule(struct parser *p)
{
    struct gate_rule r = {.line = p->line};
    const char *from = p->p;
    p->baseline = false;
    p->first = p->out->nodes.n;
    int rc = sum(p, &r.left);
    if (rc == 0 && p->baseline)
        rc = fail(p, "baseline is the left side as it was recorded: it belongs to the right side", "");
    const char *middle = p->p;
    if (rc == 0)
        rc = comparison(p, &r.compare);
    if (rc == 0)
        rc = sum(p, &r.right);
    if (rc < 0)
        return rc;
    r.wants_baseline = p->baseline;
    r.text = tidied(p, from, p->p);
    r.left_text = tidied(p, from, middle);
    skip(p);
    if (p->p < p->end && *p->p != '\n')
        return fail(p, "the rule goes on behind its end: one rule a line", "");
    if (p->out->rules.n >= MAX_RULES)
        return fail(p, "there are too many rules", "");
    if (!r.text || !r.left_text || !vec_push(&p->out->rules, r))
        return error_set(p->err, -MRD_ENOMEM, "out of memory");
    return 0;
}

int gate_rules_parse(struct gate_rules *out, struct slice text, struct error *err)
{
    struct parser p = {.out = out, .p = (const char *)text.p, .line = 1, .err = err};
    *out = (struct gate_rules){0};
    if (text.len > MAX_TEXT)
        return error_set(err, -MRD_ELIMIT, "rules are longer than a megabyte");
    p.end = text.len ? p.p + text.len : p.p;
    for (int rc = 0; p.p < p.end; p.p += p.p < p.end, p.line++) {
        skip(&p);
        if (p.p < p.end && *p.p != '\n' && (rc = rule(&p)) < 0)
            return rc;
    }
    return out->rules.n ? 0 : error_set(err, -MRD_EINVALID, "there is no rule in it");
}

void gate_rules_free(struct gate_rules *r)
{
    vec_free(&r->nodes);
    vec_free(&r->rules);
    arena_free(&r->arena);
}

bool gate_holds(enum gate_compare c, double left, double right)
{
    switch (c) {
    case GATE_LE:
        return left <= right;
    case GATE_LT:
        return left < right;
    case GATE_GE:
        return left >= right;
    case GATE_GT:
        return left > right;
    case GATE_EQ:
        return left == right;
    case GATE_NE:
        return left != right;
    }
    return false;
}
