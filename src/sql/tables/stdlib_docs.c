/* __intrinsic_stdlib_objects(): what the modules of all packages define, from their own comments.
 *
 * A comment that stands right in front of a CREATE PERFETTO statement describes the object; one in front of a column or
 * an argument describes that, and one in front of RETURNS the result. The comment at the top of a file describes the
 * module. */
#include "base/json_writer.h"
#include "sql/dialect/dialect.h"
#include "sql/dialect/parse.h"
#include "sql/tables/tables.h"

#include <stdio.h>

/* The comment lines that end right before p[at], joined by blanks, without their "--". */
static void comment_before(const struct sql_token *p, size_t at, struct sql_message *out)
{
    size_t from = at;
    while (from > 0 && token_is_blank(p[from - 1].kind)) {
        if (p[from - 1].kind == TOKEN_SPACE && from < at && memmem(p[from - 1].text, p[from - 1].len, "\n\n", 2))
            break; /* an empty line: what is above speaks of something else */
        from--;
    }
    for (size_t i = from; i < at; i++) {
        if (p[i].kind != TOKEN_COMMENT || p[i].len < 2 || p[i].text[0] != '-')
            continue;
        size_t skip = 2;
        while (skip < p[i].len && p[i].text[skip] == ' ')
            skip++;
        if (skip < p[i].len)
            sql_message_add(out, "%s%.*s", out->n ? " " : "", (int)(p[i].len - skip), p[i].text + skip);
    }
}

static int add_bytes(void *message, const void *bytes, size_t len)
{
    sql_message_add(message, "%.*s", (int)len, (const char *)bytes);
    return 0;
}

/* [{"name":…,"type":…,"description":…}, …] */
static void fields_json(const struct sql_token *p, size_t n, const struct parsed_fields *f, struct sql_message *out)
{
    struct json_writer w = {.put = add_bytes, .ctx = out};
    json_put_open(&w, '[');
    for (size_t i = 0; i < f->n; i++) {
        const struct sql_token *name = f->p[i].name, *end = f->p[i].type + 1;
        struct sql_message doc = {0};
        comment_before(p, (size_t)(name - p), &doc);
        if (end < p + n && end->kind == TOKEN_LP) /* JOINID(thread.id) */
            while (end < p + n && (end++)->kind != TOKEN_RP)
                ;
        json_put_open(&w, '{');
        json_put_key(&w, "name");
        json_put_bytes(&w, name->text, name->len);
        json_put_key(&w, "type");
        json_put_bytes(&w, f->p[i].type->text, (size_t)(end[-1].text + end[-1].len - f->p[i].type->text));
        json_put_key(&w, "description");
        json_put_bytes(&w, doc.p ? doc.p : "", doc.n);
        json_put_close(&w, '}');
        vec_free(&doc);
    }
    json_put_close(&w, ']');
}

enum {
    C_PACKAGE,
    C_MODULE,
    C_NAME,
    C_QUALIFIED,
    C_TYPE,
    C_EXPOSED,
    C_SHORT,
    C_SUMMARY,
    C_DESCRIPTION,
    C_RETURN,
    C_RETURN_DOC,
    C_ARGS,
    C_COLS,
    N_COLUMNS
};

struct docs {
    struct strpool *strings;
    struct table *out;
    const char *package, *module;
};

static int add(struct docs *d, const char *name, size_t len, const char *type, const struct sql_message *doc,
               const struct sql_token *returns, const struct sql_message *return_doc, const struct sql_message *args,
               const struct sql_message *cols)
{
    int64_t w[N_COLUMNS];
    const char *text = doc->p ? doc->p : "";
    size_t first = 0; /* the first sentence */
    while (first < doc->n && !(text[first] == '.' && (first + 1 == doc->n || text[first + 1] == ' ')))
        first++;
    first += first < doc->n;
    w[C_PACKAGE] = strpool_intern_str(d->strings, d->package);
    w[C_MODULE] = strpool_intern_str(d->strings, d->module);
    w[C_NAME] = strpool_intern(d->strings, name, len);
    w[C_QUALIFIED] = strpool_printf(d->strings, "%s.%.*s", d->module, (int)len, name);
    w[C_TYPE] = strpool_intern_str(d->strings, type);
    w[C_EXPOSED] = name[0] != '_';
    w[C_SHORT] = strpool_intern(d->strings, text, first);
    w[C_SUMMARY] = w[C_SHORT];
    w[C_DESCRIPTION] = strpool_intern(d->strings, text, doc->n);
    w[C_RETURN] = returns ? strpool_intern(d->strings, returns->text, returns->len) : strpool_intern(d->strings, "", 0);
    w[C_RETURN_DOC] = strpool_intern_str(d->strings, return_doc && return_doc->p ? return_doc->p : "");
    w[C_ARGS] = strpool_intern_str(d->strings, args && args->p ? args->p : "[]");
    w[C_COLS] = strpool_intern_str(d->strings, cols && cols->p ? cols->p : "[]");
    return table_append(d->out, w) == UINT32_MAX ? -MRD_ENOMEM : 0;
}

/* Where the RETURNS stands that belongs to the type p[at]; what describes the result is in front of it. */
static size_t returns_word(const struct sql_token *p, size_t at)
{
    do
        at--;
    while (at > 0 && token_is_blank(p[at].kind));
    return at;
}

static int add_object(struct docs *d, const struct sql_token *p, size_t n, const struct parsed *s)
{
    static const char *const types[] = {[STATEMENT_TABLE] = "TABLE",
                                        [STATEMENT_VIEW] = "VIEW",
                                        [STATEMENT_FUNCTION] = "FUNCTION",
                                        [STATEMENT_MACRO] = "MACRO"};
    struct sql_message doc = {0}, return_doc = {0}, args = {0}, cols = {0};
    size_t first = 0;
    if (s->kind < STATEMENT_TABLE || s->kind > STATEMENT_MACRO)
        return 0;
    while (token_is_blank(p[first].kind))
        first++;
    comment_before(p, first, &doc);
    fields_json(p, n, &s->args, &args);
    fields_json(p, n, &s->columns, &cols);
    if (s->returns && !s->returns_table)
        comment_before(p, returns_word(p, (size_t)(s->returns - p)), &return_doc);
    int rc = add(d, s->name->text, s->name->len, s->returns_table ? "TABLE_FUNCTION" : types[s->kind], &doc, s->returns,
                 &return_doc, &args, &cols);
    vec_free(&doc);
    vec_free(&return_doc);
    vec_free(&args);
    vec_free(&cols);
    return rc;
}

/* The comment block at the top of the file, down to the first empty line. */
static void module_comment(const struct sql_token *p, size_t n, struct sql_message *out)
{
    size_t end = 0;
    while (end < n && token_is_blank(p[end].kind) &&
           !(p[end].kind == TOKEN_SPACE && memmem(p[end].text, p[end].len, "\n\n", 2)))
        end++;
    comment_before(p, end, out);
}

static int add_module(struct docs *d, const struct sql_module *m)
{
    struct sql_source *source = sql_source_new(SOURCE_MODULE, m->name, slice_of(m->text, m->len));
    struct sql_frame frame = {.source = source};
    struct sql_tokens t = {0};
    struct sql_message doc = {0};
    int rc = source && sql_tokens_scan(&t, &frame) ? 0 : -MRD_ENOMEM;
    if (rc == 0) {
        module_comment(t.p, t.n, &doc);
        rc = add(d, m->name, strlen(m->name), "MODULE", &doc, NULL, NULL, NULL, NULL);
        vec_free(&doc);
    }
    for (size_t at = 0; rc == 0 && at < t.n;) {
        size_t end = at;
        struct parsed s;
        struct parse_problem problem;
        while (end < t.n && t.p[end].kind != TOKEN_SEMI)
            end++;
        if (statement_parse(t.p + at, end - at, &s, &problem) == 0) {
            rc = add_object(d, t.p + at, end - at, &s);
            parsed_free(&s);
        }
        at = end + 1;
    }
    sql_tokens_free(&t);
    sql_source_unref(source);
    return rc;
}

static int stdlib_objects(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    struct module_registry *r = dialect_modules(e);
    int rc = 0;
    (void)args, (void)err;
    for (size_t i = 0; i < r->packages.n; i++) {
        struct docs d = {&engine_storage(e)->strings, out, r->packages.p[i].name, NULL};
        for (size_t k = 0; k < r->packages.p[i].modules.n && rc == 0; k++) {
            d.module = r->packages.p[i].modules.p[k].name;
            rc = add_module(&d, &r->packages.p[i].modules.p[k]);
        }
    }
    return rc;
}

static const struct column_def columns[N_COLUMNS] = {
    {"package", COL_STR, 0, ""},
    {"module", COL_STR, 0, ""},
    {"name", COL_STR, 0, ""},
    {"qualified_name", COL_STR, 0, ""},
    {"object_type", COL_STR, 0, ""},
    {"exposed", COL_I64, 0, ""},
    {"short_description", COL_STR, 0, ""},
    {"summary", COL_STR, 0, ""},
    {"description", COL_STR, 0, ""},
    {"return_type", COL_STR, 0, ""},
    {"return_description", COL_STR, 0, ""},
    {"args", COL_STR, 0, "JSON"},
    {"cols", COL_STR, 0, "JSON"},
};
static const struct table_def def = {"", columns, N_COLUMNS, ""};

const struct engine_table_function stdlib_docs_table_functions[] = {
    {"__intrinsic_stdlib_objects", &def, 0, false, stdlib_objects},
};
const size_t stdlib_docs_table_functions_n = 1;
