/* A recursive-descent parser for CREATE PERFETTO …, DROP PERFETTO INDEX and INCLUDE PERFETTO MODULE. */
#include "sql/dialect/parse.h"

#include <stdio.h>

static const struct {
    const char *name;
    uint8_t type;
} value_types[] = {
    {"bool", VALUE_BOOL},   {"long", VALUE_LONG},     {"timestamp", VALUE_LONG}, {"duration", VALUE_LONG},
    {"id", VALUE_LONG},     {"joinid", VALUE_LONG},   {"argsetid", VALUE_LONG},  {"int", VALUE_LONG},
    {"uint", VALUE_LONG},   {"double", VALUE_DOUBLE}, {"float", VALUE_DOUBLE},   {"string", VALUE_STRING},
    {"bytes", VALUE_BYTES}, {"proto", VALUE_BYTES},   {"any", VALUE_ANY},
};

int value_type_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof value_types / sizeof *value_types; i++)
        if (token_is(name, len, value_types[i].name))
            return value_types[i].type;
    return -1;
}

const char *value_type_name(enum value_type t)
{
    static const char *const names[VALUE_TYPE_COUNT] = {"BOOL", "LONG", "DOUBLE", "STRING", "BYTES", "ANY"};
    return names[t];
}

/* Types that a macro may name for its arguments and its result. */
static const char *const macro_types[] = {"columnnamelist", "_projectionfragment", "_tablenamelist",  "columnname",
                                          "expr",           "tableorsubquery",     "unparenexprlist", "exprlist"};

static bool is_macro_type(const struct sql_token *t)
{
    for (size_t i = 0; i < sizeof macro_types / sizeof *macro_types; i++)
        if (token_is(t->text, t->len, macro_types[i]))
            return true;
    return false;
}

/* ---- where statements end ---- */

/* Semicolons in the body of CREATE [TEMP] TRIGGER do not end it; "; END ;" does. */
struct ending {
    enum { START, CREATE, TEMP, TRIGGER, OTHER } state;
    bool after_semi, after_end; /* what stands before, inside a trigger */
};

/* Does the token end the statement? */
static bool ends(struct ending *e, const struct sql_token *t)
{
    if (t->kind == TOKEN_SEMI && (e->state != TRIGGER || e->after_end))
        return true;
    if (token_is_blank(t->kind) || e->state == OTHER)
        return false;
    bool word = t->kind == TOKEN_WORD;
    e->after_end = e->after_semi && word && token_is(t->text, t->len, "end");
    e->after_semi = t->kind == TOKEN_SEMI;
    if (e->state == START)
        e->state = word && token_is(t->text, t->len, "create") ? CREATE : OTHER;
    else if (e->state != TRIGGER && token_is(t->text, t->len, "trigger"))
        e->state = TRIGGER;
    else if (e->state != TRIGGER)
        e->state = e->state == CREATE && (token_is(t->text, t->len, "temp") || token_is(t->text, t->len, "temporary"))
                       ? TEMP
                       : OTHER;
    return false;
}

bool statement_scan(struct sql_tokens *out, struct sql_frame *frame, size_t from, size_t *end)
{
    struct ending e = {START, false, false};
    size_t len = frame->source->len;
    for (size_t at = from; at < len;) {
        if (!sql_tokens_scan_one(out, frame, &at))
            return false;
        if (ends(&e, vec_last(out))) {
            out->n--;
            *end = at;
            return true;
        }
    }
    *end = len;
    return true;
}

/* ---- the cursor ---- */

struct parser {
    const struct sql_token *p;
    size_t n;
    size_t i; /* the next token that is not blank */
    struct parse_problem *problem;
};

static void skip(struct parser *c)
{
    while (c->i < c->n && token_is_blank(c->p[c->i].kind))
        c->i++;
}

static const struct sql_token *peek(struct parser *c)
{
    skip(c);
    return c->i < c->n ? &c->p[c->i] : NULL;
}

static int syntax_error(struct parser *c, const char *wanted)
{
    const struct sql_token *t = peek(c);
    if (t) {
        snprintf(c->problem->text, sizeof c->problem->text, "near \"%.*s\": syntax error%s%s", (int)t->len, t->text,
                 wanted ? ", expected " : "", wanted ? wanted : "");
        c->problem->token = t;
    } else {
        snprintf(c->problem->text, sizeof c->problem->text, "incomplete input%s%s", wanted ? ", expected " : "",
                 wanted ? wanted : "");
        c->problem->token = c->n ? &c->p[c->n - 1] : NULL;
    }
    return -MRD_ESQL;
}

static int problem_at(struct parser *c, const struct sql_token *t, const char *fmt, const char *arg)
{
    snprintf(c->problem->text, sizeof c->problem->text, fmt, arg);
    c->problem->token = t;
    return -MRD_ESQL;
}

static bool accept_kind(struct parser *c, enum token_kind kind)
{
    const struct sql_token *t = peek(c);
    if (!t || t->kind != kind)
        return false;
    c->i++;
    return true;
}

static bool accept_word(struct parser *c, const char *keyword)
{
    const struct sql_token *t = peek(c);
    if (!t || t->kind != TOKEN_WORD || !token_is(t->text, t->len, keyword))
        return false;
    c->i++;
    return true;
}

static const struct sql_token *accept_name(struct parser *c)
{
    const struct sql_token *t = peek(c);
    if (!t || (t->kind != TOKEN_WORD && t->kind != TOKEN_QUOTED))
        return NULL;
    c->i++;
    return t;
}

#define EXPECT(what, text)                                                                                             \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            return syntax_error(c, text);                                                                              \
    } while (0)

/* TYPE or TYPE(table.column) */
static int type_name(struct parser *c, const struct sql_token **out)
{
    const struct sql_token *t = peek(c);
    EXPECT(t && t->kind == TOKEN_WORD, "a type");
    c->i++;
    *out = t;
    if (!accept_kind(c, TOKEN_LP))
        return 0;
    EXPECT(accept_name(c), "table.column");
    EXPECT(accept_kind(c, TOKEN_DOT), "table.column");
    EXPECT(accept_name(c), "table.column");
    EXPECT(accept_kind(c, TOKEN_RP), ")");
    return 0;
}

/* name TYPE {, name TYPE}; the list may be empty when `empty`. Stops in front of what is neither. */
static int field_list(struct parser *c, struct parsed_fields *out, bool empty)
{
    const struct sql_token *t = peek(c);
    if (empty && (!t || t->kind == TOKEN_RP))
        return 0;
    do {
        struct parsed_field f = {0};
        EXPECT((f.name = accept_name(c)), "a name");
        int rc = type_name(c, &f.type);
        if (rc)
            return rc;
        if (accept_kind(c, TOKEN_DOT)) {
            EXPECT(accept_kind(c, TOKEN_DOT) && accept_kind(c, TOKEN_DOT), "...");
            f.variadic = true;
        }
        if (!vec_push(out, f))
            return -MRD_ENOMEM;
    } while (accept_kind(c, TOKEN_COMMA));
    return 0;
}

static int body(struct parser *c, struct parsed *out, const char *wanted)
{
    EXPECT(accept_word(c, "as"), "AS");
    EXPECT(peek(c), wanted);
    out->body = c->p + c->i;
    out->n_body = c->n - c->i;
    return 0;
}

static int columns_and_body(struct parser *c, struct parsed *out)
{
    if (accept_kind(c, TOKEN_LP)) {
        out->has_columns = true;
        int rc = field_list(c, &out->columns, false);
        if (rc)
            return rc;
        EXPECT(accept_kind(c, TOKEN_RP), ")");
    }
    return body(c, out, "a SELECT statement");
}

static int parse_table(struct parser *c, struct parsed *out)
{
    EXPECT((out->name = accept_name(c)), "the name of a table");
    if (accept_word(c, "using")) {
        const struct sql_token *impl = peek(c);
        EXPECT(accept_name(c), "dataframe");
        if (!token_is(impl->text, impl->len, "dataframe"))
            return problem_at(c, impl, "Invalid table implementation type%s, expected dataframe", "");
    }
    return columns_and_body(c, out);
}

static int parse_view(struct parser *c, struct parsed *out)
{
    EXPECT((out->name = accept_name(c)), "the name of a view");
    return columns_and_body(c, out);
}

static int parse_function(struct parser *c, struct parsed *out)
{
    EXPECT((out->name = accept_name(c)), "the name of a function");
    EXPECT(accept_kind(c, TOKEN_LP), "(");
    int rc = field_list(c, &out->args, true);
    if (rc)
        return rc;
    EXPECT(accept_kind(c, TOKEN_RP), ")");
    EXPECT(accept_word(c, "returns"), "RETURNS");
    const struct sql_token *t = peek(c);
    if (t && t->kind == TOKEN_WORD && token_is(t->text, t->len, "table")) {
        c->i++;
        out->returns_table = true;
        out->returns = t;
        EXPECT(accept_kind(c, TOKEN_LP), "(");
        rc = field_list(c, &out->columns, false);
        if (rc)
            return rc;
        EXPECT(accept_kind(c, TOKEN_RP), ")");
    } else {
        rc = type_name(c, &out->returns);
        if (rc)
            return rc;
    }
    if (accept_word(c, "delegates")) {
        EXPECT(accept_word(c, "to"), "TO");
        EXPECT((out->on = accept_name(c)), "the name of an intrinsic function");
        EXPECT(!peek(c), NULL);
        return 0;
    }
    return body(c, out, "a SELECT statement");
}

static int parse_macro(struct parser *c, struct parsed *out)
{
    EXPECT((out->name = accept_name(c)), "the name of a macro");
    EXPECT(accept_kind(c, TOKEN_LP), "(");
    int rc = field_list(c, &out->args, true);
    if (rc)
        return rc;
    EXPECT(accept_kind(c, TOKEN_RP), ")");
    EXPECT(accept_word(c, "returns"), "RETURNS");
    rc = type_name(c, &out->returns);
    if (rc)
        return rc;
    rc = body(c, out, "the macro's text");
    for (size_t i = 0; i <= out->args.n && rc == 0; i++) {
        const struct sql_token *t = i < out->args.n ? out->args.p[i].type : out->returns;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)t->len, t->text);
        if (!is_macro_type(t))
            rc = problem_at(c, t, "Macro: unknown type \"%s\"", name);
    }
    return rc;
}

static int parse_index(struct parser *c, struct parsed *out)
{
    EXPECT((out->name = accept_name(c)), "the name of an index");
    EXPECT(accept_word(c, "on"), "ON");
    EXPECT((out->on = accept_name(c)), "the name of a table");
    EXPECT(accept_kind(c, TOKEN_LP), "(");
    do {
        struct parsed_field f = {0};
        EXPECT((f.name = accept_name(c)), "the name of a column");
        if (!vec_push(&out->args, f))
            return -MRD_ENOMEM;
    } while (accept_kind(c, TOKEN_COMMA));
    EXPECT(accept_kind(c, TOKEN_RP), ")");
    EXPECT(!peek(c), NULL);
    return 0;
}

static int parse_drop_index(struct parser *c, struct parsed *out)
{
    EXPECT((out->name = accept_name(c)), "the name of an index");
    EXPECT(accept_word(c, "on"), "ON");
    EXPECT((out->on = accept_name(c)), "the name of a table");
    EXPECT(!peek(c), NULL);
    return 0;
}

static int parse_include(struct parser *c, struct parsed *out)
{
    const struct sql_token *t = peek(c);
    EXPECT(t, "the name of a module");
    out->body = t;
    do {
        t = peek(c);
        EXPECT(t && (t->kind == TOKEN_WORD || t->kind == TOKEN_STAR), "a part of a module's name");
        c->i++;
    } while (accept_kind(c, TOKEN_DOT));
    out->n_body = (size_t)(c->p + c->i - out->body);
    EXPECT(!peek(c), NULL);
    return 0;
}

static const struct {
    const char *words[3]; /* behind CREATE [OR REPLACE], or at the beginning */
    bool create;
    uint8_t kind;
    int (*parse)(struct parser *c, struct parsed *out);
} forms[] = {
    {{"perfetto", "table"}, true, STATEMENT_TABLE, parse_table},
    {{"perfetto", "view"}, true, STATEMENT_VIEW, parse_view},
    {{"perfetto", "function"}, true, STATEMENT_FUNCTION, parse_function},
    {{"perfetto", "macro"}, true, STATEMENT_MACRO, parse_macro},
    {{"perfetto", "index"}, true, STATEMENT_INDEX, parse_index},
    {{"drop", "perfetto", "index"}, false, STATEMENT_DROP_INDEX, parse_drop_index},
    {{"include", "perfetto", "module"}, false, STATEMENT_INCLUDE, parse_include},
};

/* The row of `forms` whose words stand next (then the cursor is behind them); -1 when none does. */
static int find_form(struct parser *c, bool *replace)
{
    size_t start = c->i;
    bool create = accept_word(c, "create");
    *replace = create && accept_word(c, "or");
    if (*replace && !accept_word(c, "replace"))
        create = false;
    size_t after = c->i;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t w = 0;
        c->i = forms[i].create ? after : start;
        if (forms[i].create && !create)
            continue;
        while (w < 3 && forms[i].words[w] && accept_word(c, forms[i].words[w]))
            w++;
        if (w == 3 || !forms[i].words[w])
            return (int)i;
    }
    c->i = start;
    return -1;
}

enum statement_kind statement_classify(const struct sql_token *p, size_t n)
{
    struct parser c = {.p = p, .n = n};
    bool replace;
    if (!peek(&c))
        return STATEMENT_BLANK;
    int form = find_form(&c, &replace);
    return form < 0 ? STATEMENT_SQLITE : (enum statement_kind)forms[form].kind;
}

int statement_parse(const struct sql_token *p, size_t n, struct parsed *out, struct parse_problem *problem)
{
    struct parser cursor = {.p = p, .n = n, .problem = problem}, *c = &cursor;
    *out = (struct parsed){.kind = STATEMENT_BLANK};
    if (!peek(c))
        return 0;
    int form = find_form(c, &out->replace);
    if (form < 0) {
        out->kind = STATEMENT_SQLITE;
        out->body = p;
        out->n_body = n;
        if (accept_word(c, "create")) { /* CREATE PERFETTO something else */
            if (accept_word(c, "or"))
                accept_word(c, "replace");
            if (accept_word(c, "perfetto"))
                return syntax_error(c, "TABLE, VIEW, FUNCTION, MACRO or INDEX");
        }
        return 0;
    }
    out->kind = (enum statement_kind)forms[form].kind;
    int rc = forms[form].parse(c, out);
    if (rc)
        parsed_free(out);
    return rc;
}

void parsed_free(struct parsed *p)
{
    vec_free(&p->args);
    vec_free(&p->columns);
}
