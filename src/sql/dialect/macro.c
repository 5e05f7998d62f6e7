/* Macro expansion on tokens: user macros and the intrinsic ones. */
#include "sql/dialect/macro.h"

#include <stdio.h>
#include <strings.h>

struct macro *macro_find(const struct macro_table *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->n; i++)
        if (strlen(t->p[i]->name) == len && strncasecmp(t->p[i]->name, name, len) == 0)
            return t->p[i];
    return NULL;
}

static void macro_free(struct macro *m)
{
    if (!m)
        return;
    sql_source_unref(m->source);
    mem_free(m->name);
    mem_free(m->params);
    mem_free(m);
}

bool macro_define(struct macro_table *t, const char *name, const struct slice *params, size_t n_params,
                  struct slice body)
{
    size_t names = 0;
    for (size_t i = 0; i < n_params; i++)
        names += params[i].len;
    struct macro *m = mem_zalloc(sizeof *m);
    if (!m)
        return false;
    m->name = mem_strdup(name);
    m->source = sql_source_new(SOURCE_MACRO, name, body);
    m->params = mem_alloc(n_params * sizeof *m->params + names + 1);
    if (!m->name || !m->source || !m->params) {
        macro_free(m);
        return false;
    }
    m->n_params = n_params;
    char *to = (char *)(m->params + n_params);
    for (size_t i = 0; i < n_params; i++) {
        memcpy(to, params[i].p, params[i].len);
        m->params[i] = (struct macro_param){to, params[i].len};
        to += params[i].len;
    }
    for (size_t i = 0; i < t->n; i++)
        if (strcasecmp(t->p[i]->name, name) == 0) {
            macro_free(t->p[i]);
            t->p[i] = m;
            return true;
        }
    if (vec_push(t, m))
        return true;
    macro_free(m);
    return false;
}

void macro_forget(struct macro_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcasecmp(t->p[i]->name, name) == 0) {
            macro_free(t->p[i]);
            t->p[i] = t->p[--t->n];
            return;
        }
}

void macro_table_free(struct macro_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        macro_free(t->p[i]);
    vec_free(t);
}

/* ---- expansion ---- */

struct span {
    const struct sql_token *p;
    size_t n;
};

/* What `$name` stands for inside a body. */
struct binding {
    const struct macro *macro;
    const struct sql_tokens *args;
};

struct expander {
    const struct macro_table *macros;
    struct arena *arena;
    struct macro_problem *problem;
    size_t n_tokens;
    int depth;
};

static int fail(struct expander *x, const struct sql_token *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(struct expander *x, const struct sql_token *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(x->problem->text, sizeof x->problem->text, fmt, ap);
    va_end(ap);
    x->problem->token = *at;
    return -MRD_ESQL;
}

static int expand(struct expander *x, const struct binding *env, struct span in, struct sql_tokens *out);

static int emit(struct expander *x, struct sql_tokens *out, const struct sql_token *p, size_t n)
{
    x->n_tokens += n;
    if (x->n_tokens > MACRO_MAX_TOKENS)
        return n ? fail(x, p, "macro expansion grows beyond %d tokens", MACRO_MAX_TOKENS) : -MRD_ELIMIT;
    return sql_tokens_append(out, p, n) ? 0 : -MRD_ENOMEM;
}

/* Tokens that nobody wrote, at the place of `at`. */
static int emit_made(struct expander *x, struct sql_tokens *out, const struct sql_token *at, const char *text)
{
    size_t before = out->n;
    if (!sql_tokens_add_made(out, at, text))
        return -MRD_ENOMEM;
    x->n_tokens += out->n - before;
    return x->n_tokens > MACRO_MAX_TOKENS ? fail(x, at, "macro expansion grows beyond %d tokens", MACRO_MAX_TOKENS) : 0;
}

/* Splits at commas that stand outside parentheses. An empty list has no elements; an empty element is an error. */
static int split_commas(struct expander *x, struct span in, struct span **list, size_t *n_list)
{
    VEC(struct span)
    v = {0};
    int depth = 0, rc = 0;
    size_t start = 0;
    sql_tokens_trim(&in.p, &in.n);
    for (size_t i = 0; in.n && i <= in.n && rc == 0; i++) {
        int kind = i < in.n ? in.p[i].kind : TOKEN_COMMA;
        if (kind == TOKEN_LP)
            depth++;
        else if (kind == TOKEN_RP)
            depth--;
        else if (kind == TOKEN_COMMA && (depth == 0 || i == in.n)) {
            struct span s = {in.p + start, i - start};
            sql_tokens_trim(&s.p, &s.n);
            start = i + 1;
            if (s.n == 0)
                rc = fail(x, &in.p[i < in.n ? i : in.n - 1], "empty element in a list");
            else if (!vec_push(&v, s))
                rc = -MRD_ENOMEM;
        }
    }
    *list = v.p;
    *n_list = v.n;
    return rc;
}

/* '(a, b)' without its parentheses, or the list as it stands. */
static struct span unparenthesize(struct span s)
{
    sql_tokens_trim(&s.p, &s.n);
    if (s.n < 2 || s.p[0].kind != TOKEN_LP || s.p[s.n - 1].kind != TOKEN_RP)
        return s;
    int depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        depth += s.p[i].kind == TOKEN_LP ? 1 : s.p[i].kind == TOKEN_RP ? -1 : 0;
        if (depth == 0 && i + 1 < s.n)
            return s; /* the first parenthesis closes before the end: "(a) + (b)" */
    }
    return (struct span){s.p + 1, s.n - 2};
}

static int call_user(struct expander *x, const struct sql_token *name, const struct macro *m,
                     const struct sql_tokens *args, struct sql_tokens *out)
{
    struct sql_tokens body = {0};
    struct sql_frame *frame = arena_zalloc(x->arena, sizeof *frame);
    if (!frame)
        return -MRD_ENOMEM;
    *frame = (struct sql_frame){.source = m->source, .parent = name->frame, .call_at = name->at};
    int rc = sql_tokens_scan(&body, frame) ? 0 : -MRD_ENOMEM;
    struct binding env = {m, args};
    if (rc == 0)
        rc = expand(x, &env, (struct span){body.p, body.n}, out);
    sql_tokens_free(&body);
    return rc;
}

/* ---- intrinsic macros ---- */

enum intrinsic_kind { INTRINSIC_STRINGIFY, INTRINSIC_APPLY };

static const struct intrinsic {
    const char *name;
    uint8_t kind;
    bool prefix;        /* the joiner also stands in front, when there are elements */
    const char *joiner; /* between the results */
} intrinsics[] = {
    {"__intrinsic_stringify", INTRINSIC_STRINGIFY, false, NULL},
    {"__intrinsic_stringify_ignore_table", INTRINSIC_STRINGIFY, false, NULL},
    {"__intrinsic_token_apply", INTRINSIC_APPLY, false, " , "},
    {"__intrinsic_token_apply_prefix", INTRINSIC_APPLY, true, " , "},
    {"__intrinsic_token_apply_and", INTRINSIC_APPLY, false, " AND "},
    {"__intrinsic_token_apply_and_prefix", INTRINSIC_APPLY, true, " AND "},
};

static int call_stringify(struct expander *x, const struct sql_token *name, const struct sql_tokens *args,
                          size_t n_args, struct sql_tokens *out)
{
    if (n_args != 1)
        return fail(x, name, "stringify: must specify exactly 1 argument, actual %zu", n_args);
    const struct sql_token *p = args[0].p;
    size_t n = args[0].n, len;
    sql_tokens_trim(&p, &n);
    char *joined = sql_tokens_join(x->arena, p, n, &len);
    char *text = joined ? arena_alloc_bytes(x->arena, 2 * len + 3) : NULL;
    if (!text)
        return -MRD_ENOMEM;
    size_t to = 0;
    text[to++] = '\'';
    for (size_t i = 0; i < len; i++) {
        if (joined[i] == '\'') { /* a doubled quote stands for one, as it would in the text */
            text[to++] = '\'';
            i += joined[i + 1 < len ? i + 1 : i] == '\'' && i + 1 < len;
            text[to++] = '\'';
        } else {
            text[to++] = joined[i];
        }
    }
    text[to++] = '\'';
    text[to] = 0;
    return emit_made(x, out, name, text);
}

/* m!(a), m!(b)  or, with two lists, m!(a, c), m!(b, d). */
static int call_apply(struct expander *x, const struct intrinsic *in, const struct sql_token *name,
                      const struct sql_tokens *args, size_t n_args, struct sql_tokens *out)
{
    struct span *list[2] = {NULL, NULL};
    size_t n_list[2] = {0, SIZE_MAX};
    int rc = 0;
    if (n_args != 2 && n_args != 3)
        return fail(x, name, "token_apply: must specify 2 or 3 arguments, actual %zu", n_args);
    struct span macro = {args[0].p, args[0].n};
    sql_tokens_trim(&macro.p, &macro.n);
    if (macro.n != 1 || macro.p[0].kind != TOKEN_WORD)
        return fail(x, macro.n ? macro.p : name, "token_apply: the first argument must be the name of a macro");
    for (size_t i = 1; i < n_args && rc == 0; i++)
        rc = split_commas(x, unparenthesize((struct span){args[i].p, args[i].n}), &list[i - 1], &n_list[i - 1]);
    size_t n = n_list[0] < n_list[1] ? n_list[0] : n_list[1];
    struct sql_tokens call = {0};
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (i || in->prefix)
            rc = emit_made(x, out, name, in->joiner);
        call.n = 0;
        struct sql_token sign = macro.p[0];
        bool ok = sql_tokens_append(&call, &sign, 1);
        sign.made = true;
        sign.len = 1;
        sign.kind = TOKEN_BANG, sign.text = "!";
        ok = ok && sql_tokens_append(&call, &sign, 1);
        sign.kind = TOKEN_LP, sign.text = "(";
        ok = ok && sql_tokens_append(&call, &sign, 1);
        ok = ok && sql_tokens_append(&call, list[0][i].p, list[0][i].n);
        if (n_args == 3) {
            sign.kind = TOKEN_COMMA, sign.text = ",";
            ok = ok && sql_tokens_append(&call, &sign, 1);
            ok = ok && sql_tokens_append(&call, list[1][i].p, list[1][i].n);
        }
        sign.kind = TOKEN_RP, sign.text = ")";
        ok = ok && sql_tokens_append(&call, &sign, 1);
        if (rc == 0)
            rc = ok ? expand(x, NULL, (struct span){call.p, call.n}, out) : -MRD_ENOMEM;
    }
    sql_tokens_free(&call);
    mem_free(list[0]);
    mem_free(list[1]);
    return rc;
}

static int call(struct expander *x, const struct sql_token *name, const struct sql_tokens *args, size_t n_args,
                struct sql_tokens *out)
{
    for (size_t i = 0; i < sizeof intrinsics / sizeof *intrinsics; i++) {
        const struct intrinsic *in = &intrinsics[i];
        if (!token_is(name->text, name->len, in->name))
            continue;
        return in->kind == INTRINSIC_STRINGIFY ? call_stringify(x, name, args, n_args, out)
                                               : call_apply(x, in, name, args, n_args, out);
    }
    const struct macro *m = macro_find(x->macros, name->text, name->len);
    if (!m)
        return fail(x, name, "Macro \"%.*s\" not found", (int)name->len, name->text);
    if (m->n_params != n_args)
        return fail(x, name, "Macro \"%s\" takes %zu argument%s, %zu given", m->name, m->n_params,
                    m->n_params == 1 ? "" : "s", n_args);
    return call_user(x, name, m, args, out);
}

static size_t skip_blank(struct span in, size_t i)
{
    while (i < in.n && token_is_blank(in.p[i].kind))
        i++;
    return i;
}

/* in.p[at] is a name, in.p[open] the parenthesis of its call. *end is the place behind the closing one. */
static int expand_call(struct expander *x, const struct binding *env, struct span in, size_t at, size_t open,
                       size_t *end, struct sql_tokens *out)
{
    int depth = 0, rc;
    size_t close = open, n_args = 0;
    for (; close < in.n; close++) {
        if (in.p[close].kind == TOKEN_LP)
            depth++;
        else if (in.p[close].kind == TOKEN_RP && --depth == 0)
            break;
        else if (in.p[close].kind == TOKEN_SEMI)
            close = in.n;
    }
    if (close >= in.n)
        return fail(x, &in.p[open], "this macro call is not closed; add a )");
    if (x->depth >= MACRO_MAX_DEPTH)
        return fail(x, &in.p[at], "Macro \"%.*s\" is nested too deeply; check for endless recursion", (int)in.p[at].len,
                    in.p[at].text);
    if (++x->n_tokens > MACRO_MAX_TOKENS) /* calls that yield nothing count as well */
        return fail(x, &in.p[at], "macro expansion grows beyond %d tokens", MACRO_MAX_TOKENS);
    x->depth++;
    struct span *list;
    rc = split_commas(x, (struct span){in.p + open + 1, close - open - 1}, &list, &n_args);
    struct sql_tokens *args = rc == 0 ? mem_zalloc((n_args + 1) * sizeof *args) : NULL;
    if (rc == 0 && !args)
        rc = -MRD_ENOMEM;
    for (size_t i = 0; rc == 0 && i < n_args; i++)
        rc = expand(x, env, list[i], &args[i]);
    if (rc == 0)
        rc = call(x, &in.p[at], args, n_args, out);
    for (size_t i = 0; args && i < n_args; i++)
        sql_tokens_free(&args[i]);
    mem_free(args);
    mem_free(list);
    x->depth--;
    *end = close + 1;
    return rc;
}

static const struct sql_tokens *bound(const struct binding *env, const struct sql_token *t)
{
    if (!env || t->kind != TOKEN_VARIABLE || t->text[0] != '$')
        return NULL;
    for (size_t i = 0; i < env->macro->n_params; i++)
        if (env->macro->params[i].len == t->len - 1 &&
            strncasecmp(env->macro->params[i].name, t->text + 1, t->len - 1) == 0)
            return &env->args[i];
    return NULL;
}

static int expand(struct expander *x, const struct binding *env, struct span in, struct sql_tokens *out)
{
    size_t plain = 0; /* tokens from here on are still to be copied */
    int rc = 0;
    for (size_t i = 0; i < in.n && rc == 0;) {
        const struct sql_tokens *arg = bound(env, &in.p[i]);
        struct sql_token name = in.p[i];
        size_t bang = skip_blank(in, i + 1);
        if (arg && bang < in.n && in.p[bang].kind == TOKEN_BANG && arg->n == 1)
            name = arg->p[0]; /* $m!(...): the name of the macro is a parameter */
        else if (arg) {
            rc = emit(x, out, in.p + plain, i - plain);
            if (rc == 0)
                rc = emit(x, out, arg->p, arg->n);
            plain = ++i;
            continue;
        }
        if (name.kind != TOKEN_WORD || bang >= in.n || in.p[bang].kind != TOKEN_BANG) {
            i++;
            continue;
        }
        size_t open = skip_blank(in, bang + 1), end = i + 1;
        if (open >= in.n || in.p[open].kind != TOKEN_LP)
            return fail(x, &in.p[bang], "near \"!\": syntax error");
        rc = emit(x, out, in.p + plain, i - plain);
        if (rc == 0 && arg) {
            struct sql_tokens copy = {0}; /* the call with the name put in */
            rc = sql_tokens_append(&copy, in.p + i, in.n - i) ? 0 : -MRD_ENOMEM;
            if (rc == 0) {
                copy.p[0] = name;
                rc = expand_call(x, env, (struct span){copy.p, copy.n}, 0, open - i, &end, out);
                end += i;
            }
            sql_tokens_free(&copy);
        } else if (rc == 0) {
            rc = expand_call(x, env, in, i, open, &end, out);
        }
        plain = i = end;
    }
    return rc ? rc : emit(x, out, in.p + plain, in.n - plain);
}

int macro_expand(const struct macro_table *t, struct arena *arena, const struct sql_token *p, size_t n,
                 struct sql_tokens *out, struct macro_problem *problem)
{
    struct expander x = {.macros = t, .arena = arena, .problem = problem};
    return expand(&x, NULL, (struct span){p, n}, out);
}
