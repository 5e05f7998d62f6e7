/* Parses regular expressions into trees. */
#include "sql/functions/regex_tree.h"

enum { MAX_DEPTH = 200, MAX_REPEAT = 1000 };

static void set_add(struct byte_set *s, uint8_t c)
{
    s->bits[c >> 6] |= 1ull << (c & 63);
}

struct regex_node *regex_parse_fail(struct regex_parser *p, int code, const char *text)
{
    if (!p->rc)
        p->rc = error_set(p->err, code, "%s", text);
    return NULL;
}

static struct regex_node *new_node(struct regex_parser *p, enum node_kind kind)
{
    if (++p->n_nodes > REGEX_MAX_NODES)
        return regex_parse_fail(p, -MRD_EINVALID, "the expression is too large");
    struct regex_node *n = arena_zalloc(&p->arena, sizeof *n);
    if (!n)
        return regex_parse_fail(p, -MRD_ENOMEM, "out of memory");
    n->kind = (uint8_t)kind;
    return n;
}

static bool in_class(char name, int c)
{
    switch (name) {
    case 'd':
        return c >= '0' && c <= '9';
    case 'w':
        return c < 128 && is_word(c);
    default:
        return c == ' ' || (c >= '\t' && c <= '\r');
    }
}

/* \d \W … into the set; false when the letter is not a class. */
static bool add_class(struct byte_set *s, char letter)
{
    char name = (char)tolower(letter);
    if (!strchr("dws", name))
        return false;
    for (int c = 0; c < 256; c++)
        if (in_class(name, c) == (name == letter))
            set_add(s, (uint8_t)c);
    return true;
}

/* The byte that an escape other than a class means; the cursor stands behind the backslash. */
static int escaped_byte(struct regex_parser *p)
{
    static const char names[] = "nrtfv0a", values[] = "\n\r\t\f\v\0\a";
    int c = *p->p++;
    const char *at = strchr(names, c);
    if (c && at)
        return (uint8_t)values[at - names];
    if (c == 'x' && p->end - p->p >= 2 && isxdigit(p->p[0]) && isxdigit(p->p[1])) {
        int v = 0;
        for (int i = 0; i < 2; i++, p->p++)
            v = v << 4 | (isdigit(*p->p) ? *p->p - '0' : (*p->p | 0x20) - 'a' + 10);
        return v;
    }
    if (isalnum(c)) {
        regex_parse_fail(p, -MRD_EINVALID, "unknown escape");
        return 0;
    }
    return c;
}

static void fold_case(struct regex_parser *p, struct byte_set *s)
{
    for (int c = 'a'; p->ignore_case && c <= 'z'; c++)
        if (set_has(s, (uint8_t)c) || set_has(s, (uint8_t)(c - 32))) {
            set_add(s, (uint8_t)c);
            set_add(s, (uint8_t)(c - 32));
        }
}

static const char *const posix_classes[] = {"alpha", "digit", "alnum", "upper", "lower", "space", "punct", "xdigit"};

static bool add_posix_class(struct regex_parser *p, struct byte_set *s)
{
    for (size_t i = 0; i < sizeof posix_classes / sizeof *posix_classes; i++) {
        size_t n = strlen(posix_classes[i]);
        if ((size_t)(p->end - p->p) < n + 4 || memcmp(p->p, "[:", 2) != 0 ||
            memcmp(p->p + 2, posix_classes[i], n) != 0 || memcmp(p->p + 2 + n, ":]", 2) != 0)
            continue;
        static int (*const tests[])(int) = {isalpha, isdigit, isalnum, isupper, islower, isspace, ispunct, isxdigit};
        for (int c = 0; c < 128; c++)
            if (tests[i](c))
                set_add(s, (uint8_t)c);
        p->p += n + 4;
        return true;
    }
    return false;
}

static struct regex_node *parse_set(struct regex_parser *p)
{
    struct regex_node *n = new_node(p, NODE_SET);
    bool negate = p->p < p->end && *p->p == '^', first = true;
    if (!n)
        return NULL;
    p->p += negate;
    for (; p->p < p->end && (*p->p != ']' || first); first = false) {
        if (add_posix_class(p, &n->set))
            continue;
        int lo = *p->p++, hi;
        if (lo == '\\' && p->p < p->end) {
            if (add_class(&n->set, (char)*p->p)) {
                p->p++;
                continue;
            }
            lo = *p->p == 'b' ? (p->p++, '\b') : escaped_byte(p);
        }
        hi = lo;
        if (p->end - p->p >= 2 && p->p[0] == '-' && p->p[1] != ']') {
            p->p++;
            hi = *p->p++;
            if (hi == '\\' && p->p < p->end)
                hi = escaped_byte(p);
            if (hi < lo)
                return regex_parse_fail(p, -MRD_EINVALID, "range out of order in a character class");
        }
        for (int c = lo; c <= hi; c++)
            set_add(&n->set, (uint8_t)c);
    }
    if (p->p >= p->end)
        return regex_parse_fail(p, -MRD_EINVALID, "missing ] of a character class");
    p->p++;
    fold_case(p, &n->set);
    for (int i = 0; negate && i < 4; i++)
        n->set.bits[i] = ~n->set.bits[i];
    return n;
}

static struct regex_node *parse_alternatives(struct regex_parser *p);

static struct regex_node *parse_group(struct regex_parser *p)
{
    struct regex_node *n = new_node(p, NODE_GROUP);
    if (!n)
        return NULL;
    n->group = -1;
    if (p->p < p->end && *p->p == '?') {
        if (p->end - p->p >= 2 && p->p[1] == ':')
            p->p += 2;
        else if (p->end - p->p >= 2 && p->p[1] == 'i' && p->end - p->p >= 3 && p->p[2] == ')') {
            p->ignore_case = true;
            p->p += 3;
            return new_node(p, NODE_EMPTY);
        } else
            return regex_parse_fail(p, -MRD_EINVALID, "this kind of group is not supported");
    } else if (p->n_groups < REGEX_MAX_GROUPS) {
        n->group = ++p->n_groups;
    } else {
        return regex_parse_fail(p, -MRD_EINVALID, "too many groups");
    }
    n->a = parse_alternatives(p);
    if (p->p >= p->end || *p->p != ')')
        return regex_parse_fail(p, -MRD_EINVALID, "missing )");
    p->p++;
    return n;
}

static struct regex_node *parse_assert(struct regex_parser *p, enum assert_kind kind)
{
    struct regex_node *n = new_node(p, NODE_ASSERT);
    if (n)
        n->group = kind;
    return n;
}

static struct regex_node *parse_atom(struct regex_parser *p)
{
    int c = *p->p++;
    switch (c) {
    case '(':
        return parse_group(p);
    case '[':
        return parse_set(p);
    case '^':
        return parse_assert(p, ASSERT_BEGIN);
    case '$':
        return parse_assert(p, ASSERT_END);
    case '*':
    case '+':
    case '?':
        return regex_parse_fail(p, -MRD_EINVALID, "nothing to repeat");
    default:
        break;
    }
    if (c == '\\' && p->p >= p->end)
        return regex_parse_fail(p, -MRD_EINVALID, "\\ at the end");
    if (c == '\\' && (*p->p == 'b' || *p->p == 'B'))
        return parse_assert(p, *p->p++ == 'b' ? ASSERT_WORD : ASSERT_NOT_WORD);
    struct regex_node *n = new_node(p, NODE_SET);
    if (!n)
        return NULL;
    if (c == '.') {
        memset(&n->set, 0xff, sizeof n->set);
        n->set.bits[0] &= ~(1ull << '\n');
    } else if (c == '\\' && add_class(&n->set, (char)*p->p)) {
        p->p++;
    } else {
        set_add(&n->set, (uint8_t)(c == '\\' ? escaped_byte(p) : c));
    }
    fold_case(p, &n->set);
    return n;
}

/* {n}, {n,}, {n,m}: true when it is one (else the brace is an ordinary byte). */
static bool parse_counts(struct regex_parser *p, int *min, int *max)
{
    const uint8_t *s = p->p + 1;
    int v[2] = {0, -1};
    bool digits = false;
    for (int i = 0; i < 2; i++) {
        if (s < p->end && isdigit(*s)) {
            v[i] = 0;
            digits |= i == 0;
        }
        for (; s < p->end && isdigit(*s) && v[i] <= MAX_REPEAT; s++)
            v[i] = v[i] * 10 + *s - '0';
        if (i == 0 && (s >= p->end || *s != ',')) {
            v[1] = v[0];
            break;
        }
        s += i == 0;
    }
    if (!digits || s >= p->end || *s != '}')
        return false;
    p->p = s + 1;
    *min = v[0];
    *max = v[1];
    return true;
}

static struct regex_node *parse_repeat(struct regex_parser *p)
{
    struct regex_node *n = parse_atom(p);
    for (int deep = 0; n && p->p < p->end; deep++) {
        int min = 0, max = -1;
        if (*p->p == '*' || *p->p == '+' || *p->p == '?') {
            min = *p->p == '+';
            max = *p->p == '?' ? 1 : -1;
            p->p++;
        } else if (*p->p != '{' || !parse_counts(p, &min, &max)) {
            break;
        }
        if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && max < min))
            return regex_parse_fail(p, -MRD_EINVALID, "bad count of repetitions");
        if (deep >= MAX_DEPTH)
            return regex_parse_fail(p, -MRD_EINVALID, "nested too deep");
        struct regex_node *r = new_node(p, NODE_REPEAT);
        if (!r)
            return NULL;
        r->a = n;
        r->min = min;
        r->max = max;
        if (p->p < p->end && *p->p == '?') {
            r->lazy = true;
            p->p++;
        }
        n = r;
    }
    return n;
}

static struct regex_node *parse_sequence(struct regex_parser *p)
{
    struct regex_node *n = new_node(p, NODE_CAT), **end = n ? &n->a : NULL;
    while (n && !p->rc && p->p < p->end && *p->p != '|' && *p->p != ')') {
        struct regex_node *next = *end = parse_repeat(p);
        if (next)
            end = &next->next;
    }
    return n;
}

static struct regex_node *parse_alternatives(struct regex_parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return regex_parse_fail(p, -MRD_EINVALID, "nested too deep");
    struct regex_node *n = new_node(p, NODE_ALT), **end = n ? &n->a : NULL;
    while (n && !p->rc) {
        struct regex_node *next = *end = parse_sequence(p);
        if (!next || p->rc || p->p >= p->end || *p->p != '|')
            break;
        end = &next->next;
        p->p++;
    }
    p->depth--;
    return n;
}

struct regex_node *regex_parse(struct regex_parser *p)
{
    struct regex_node *n = parse_alternatives(p);
    if (n && !p->rc && p->p < p->end)
        regex_parse_fail(p, -MRD_EINVALID, "unmatched )");
    return p->rc ? NULL : n;
}
