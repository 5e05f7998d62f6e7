/* __intrinsic_stdlib_objects() and __intrinsic_stdlib_modules(), …_tables(module), …_functions(module),
 * …_macros(module): what modules define, from their own comments.
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

/* Arguments or columns: as [{"name":…,"type":…,"description":…}, …], and a line each, "- name (type): description". */
struct fields_told {
    struct sql_message json, lines;
};

static void tell_fields(const struct sql_token *p, size_t n, const struct parsed_fields *f, struct fields_told *out)
{
    struct json_writer w = {.put = add_bytes, .ctx = &out->json};
    json_put_open(&w, '[');
    for (size_t i = 0; i < f->n; i++) {
        const struct sql_token *name = f->p[i].name, *end = f->p[i].type + 1;
        struct sql_message doc = {0};
        comment_before(p, (size_t)(name - p), &doc);
        if (end < p + n && end->kind == TOKEN_LP) /* JOINID(thread.id) */
            while (end < p + n && (end++)->kind != TOKEN_RP)
                ;
        size_t type_len = (size_t)(end[-1].text + end[-1].len - f->p[i].type->text);
        sql_message_add(&out->lines, "\n- %.*s (%.*s): %s", (int)name->len, name->text, (int)type_len,
                        f->p[i].type->text, doc.p ? doc.p : "");
        json_put_open(&w, '{');
        json_put_key(&w, "name");
        json_put_bytes(&w, name->text, name->len);
        json_put_key(&w, "type");
        json_put_bytes(&w, f->p[i].type->text, type_len);
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
    N_OBJECT_COLUMNS,
    C_TABLE_FUNCTION = N_OBJECT_COLUMNS, /* whether it is one */
    N_COLUMNS
};

/* Which objects a table function lists. Tables and views stand first, then functions, then macros. */
enum { GROUP_TABLES, GROUP_FUNCTIONS, GROUP_MACROS, OBJECT_GROUPS, GROUP_MODULES = OBJECT_GROUPS };
#define GROUP_BIT(group) (1u << (group))

struct docs_shape {
    unsigned groups; /* GROUP_BIT() of each */
    unsigned char columns[N_OBJECT_COLUMNS], n;
};

struct docs {
    struct strpool *strings;
    struct table *out;
    const struct docs_shape *shape;
    const char *package, *module;
};

enum { SHORT_BYTES = 160 };

struct object_told {
    struct slice name;
    const char *type;
    bool is_module, is_table_function;
    struct sql_message doc, return_doc;
    const struct sql_token *returns; /* NULL: nothing, or a table */
    struct fields_told args, cols;
};

static void object_free(struct object_told *o)
{
    vec_free(&o->doc);
    vec_free(&o->return_doc);
    vec_free(&o->args.json);
    vec_free(&o->args.lines);
    vec_free(&o->cols.json);
    vec_free(&o->cols.lines);
}

static void add_words(struct sql_message *out, const char *before, struct slice name)
{
    sql_message_add(out, "%s", before);
    for (size_t i = 0; i < name.len; i++)
        sql_message_add(out, "%c", name.p[i] == '.' || name.p[i] == '_' ? ' ' : name.p[i]);
}

/* All that is known of an object as one text, for searches. */
static strid summary_of(const struct docs *d, const struct object_told *o, strid qualified)
{
    struct sql_message s = {0};
    sql_message_add(&s, "Package: %s\nModule: %s\n", d->package, d->module);
    if (!o->is_module)
        sql_message_add(&s, "Name: %.*s\n", (int)o->name.len, (const char *)o->name.p);
    sql_message_add(&s, "Qualified name: %s\n", strpool_cstr(d->strings, qualified));
    add_words(&s, "Search aliases: ", slice_str(d->package));
    add_words(&s, ", ", slice_str(d->module));
    if (!o->is_module)
        add_words(&s, ", ", o->name);
    sql_message_add(&s, "\nKind: %s %s\nDescription: %s", o->name.p[0] == '_' ? "internal" : "public", o->type,
                    o->doc.p ? o->doc.p : "");
    if (o->args.lines.n)
        sql_message_add(&s, "\nArguments:%s", o->args.lines.p);
    if (o->returns)
        sql_message_add(&s, "\nReturns: %.*s: %s", (int)o->returns->len, o->returns->text,
                        o->return_doc.p ? o->return_doc.p : "");
    if (o->cols.lines.n)
        sql_message_add(&s, "\nColumns:%s", o->cols.lines.p);
    strid text = strpool_intern(d->strings, s.p ? s.p : "", s.n);
    vec_free(&s);
    return text;
}

/* What may be shown where there is little room: whole characters. */
static size_t short_length(const struct sql_message *doc)
{
    size_t n = doc->n < SHORT_BYTES ? doc->n : SHORT_BYTES;
    while (n > 0 && n < doc->n && ((unsigned char)doc->p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static bool lists(const struct docs *d, unsigned char column)
{
    return memchr(d->shape->columns, column, d->shape->n) != NULL;
}

static int add(struct docs *d, const struct object_told *o)
{
    int64_t w[N_COLUMNS], row[N_OBJECT_COLUMNS];
    const char *text = o->doc.p ? o->doc.p : "";
    strid qualified = o->is_module
                          ? strpool_intern_str(d->strings, d->module)
                          : strpool_printf(d->strings, "%s.%.*s", d->module, (int)o->name.len, (const char *)o->name.p);
    w[C_PACKAGE] = strpool_intern_str(d->strings, d->package);
    w[C_MODULE] = strpool_intern_str(d->strings, d->module);
    w[C_NAME] = strpool_intern(d->strings, o->name.p, o->name.len);
    w[C_QUALIFIED] = qualified;
    w[C_TYPE] = strpool_intern_str(d->strings, o->type);
    w[C_EXPOSED] = o->name.p[0] != '_';
    w[C_SHORT] = strpool_intern(d->strings, text, short_length(&o->doc));
    w[C_SUMMARY] = lists(d, C_SUMMARY) ? summary_of(d, o, qualified) : 0;
    w[C_DESCRIPTION] = strpool_intern(d->strings, text, o->doc.n);
    w[C_RETURN] =
        o->returns ? strpool_intern(d->strings, o->returns->text, o->returns->len) : strpool_intern(d->strings, "", 0);
    w[C_RETURN_DOC] = strpool_intern_str(d->strings, o->return_doc.p ? o->return_doc.p : "");
    w[C_ARGS] = strpool_intern_str(d->strings, o->args.json.p ? o->args.json.p : "[]");
    w[C_COLS] = strpool_intern_str(d->strings, o->cols.json.p ? o->cols.json.p : "[]");
    w[C_TABLE_FUNCTION] = o->is_table_function;
    for (size_t i = 0; i < d->shape->n; i++)
        row[i] = w[d->shape->columns[i]];
    return table_append(d->out, row) == UINT32_MAX ? -MRD_ENOMEM : 0;
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
    struct object_told o = {
        .name = slice_of(s->name->text, s->name->len), .returns = s->returns, .is_table_function = s->returns_table};
    size_t first = 0;
    while (token_is_blank(p[first].kind))
        first++;
    o.type = s->returns_table ? "TABLE_FUNCTION" : types[s->kind];
    comment_before(p, first, &o.doc);
    tell_fields(p, n, &s->args, &o.args);
    tell_fields(p, n, &s->columns, &o.cols);
    if (s->returns && !s->returns_table)
        comment_before(p, returns_word(p, (size_t)(s->returns - p)), &o.return_doc);
    int rc = add(d, &o);
    object_free(&o);
    return rc;
}

/* -1: no object. */
static int group_of(const struct parsed *s)
{
    switch (s->kind) {
    case STATEMENT_TABLE:
    case STATEMENT_VIEW:
        return GROUP_TABLES;
    case STATEMENT_FUNCTION:
        return GROUP_FUNCTIONS;
    case STATEMENT_MACRO:
        return GROUP_MACROS;
    default:
        return -1;
    }
}

static int add_group(struct docs *d, const struct sql_tokens *t, int group)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < t->n;) {
        size_t end = at;
        struct parsed s;
        struct parse_problem problem;
        while (end < t->n && t->p[end].kind != TOKEN_SEMI)
            end++;
        if (statement_parse(t->p + at, end - at, &s, &problem) == 0) {
            rc = group_of(&s) == group ? add_object(d, t->p + at, end - at, &s) : 0;
            parsed_free(&s);
        }
        at = end + 1;
    }
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
    struct object_told o = {.name = slice_str(m->name), .type = "MODULE", .is_module = true};
    int rc = source && sql_tokens_scan(&t, &frame) ? 0 : -MRD_ENOMEM;
    if (rc == 0 && d->shape->groups & GROUP_BIT(GROUP_MODULES)) {
        module_comment(t.p, t.n, &o.doc);
        rc = add(d, &o);
        object_free(&o);
    }
    for (int group = 0; group < OBJECT_GROUPS && rc == 0; group++)
        rc = d->shape->groups & GROUP_BIT(group) ? add_group(d, &t, group) : 0;
    sql_tokens_free(&t);
    sql_source_unref(source);
    return rc;
}

/* Of all modules, or of the one that is called only. */
static int add_modules(struct engine *e, const struct docs_shape *shape, const char *only, struct table *out)
{
    struct module_registry *r = dialect_modules(e);
    int rc = 0;
    for (size_t i = 0; i < r->packages.n; i++) {
        struct docs d = {&engine_storage(e)->strings, out, shape, r->packages.p[i].name, NULL};
        for (size_t k = 0; k < r->packages.p[i].modules.n && rc == 0; k++) {
            d.module = r->packages.p[i].modules.p[k].name;
            if (!only || strcmp(only, d.module) == 0)
                rc = add_module(&d, &r->packages.p[i].modules.p[k]);
        }
    }
    return rc;
}

/* No module has the name NULL. */
static int add_module_named(struct engine *e, const struct docs_shape *shape, sqlite3_value *name, struct table *out)
{
    const char *text = (const char *)sqlite3_value_text(name);
    return text ? add_modules(e, shape, text, out) : 0;
}

#define COLUMNS(...) .columns = {__VA_ARGS__}, .n = sizeof((unsigned char[]){__VA_ARGS__})

static int stdlib_objects(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    static const struct docs_shape shape = {
        GROUP_BIT(GROUP_TABLES) | GROUP_BIT(GROUP_FUNCTIONS) | GROUP_BIT(GROUP_MACROS) | GROUP_BIT(GROUP_MODULES),
        COLUMNS(C_PACKAGE, C_MODULE, C_NAME, C_QUALIFIED, C_TYPE, C_EXPOSED, C_SHORT, C_SUMMARY, C_DESCRIPTION,
                C_RETURN, C_RETURN_DOC, C_ARGS, C_COLS)};
    (void)args, (void)err;
    return add_modules(e, &shape, NULL, out);
}

static int stdlib_modules(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    static const struct docs_shape shape = {GROUP_BIT(GROUP_MODULES), COLUMNS(C_MODULE, C_PACKAGE)};
    (void)args, (void)err;
    return add_modules(e, &shape, NULL, out);
}

static int stdlib_tables(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    static const struct docs_shape shape = {GROUP_BIT(GROUP_TABLES),
                                            COLUMNS(C_NAME, C_TYPE, C_DESCRIPTION, C_EXPOSED, C_COLS)};
    (void)err;
    return add_module_named(e, &shape, args[0], out);
}

static int stdlib_functions(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    static const struct docs_shape shape = {
        GROUP_BIT(GROUP_FUNCTIONS),
        COLUMNS(C_NAME, C_DESCRIPTION, C_EXPOSED, C_TABLE_FUNCTION, C_RETURN, C_RETURN_DOC, C_ARGS, C_COLS)};
    (void)err;
    return add_module_named(e, &shape, args[0], out);
}

static int stdlib_macros(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    static const struct docs_shape shape = {GROUP_BIT(GROUP_MACROS),
                                            COLUMNS(C_NAME, C_DESCRIPTION, C_EXPOSED, C_RETURN, C_RETURN_DOC, C_ARGS)};
    (void)err;
    return add_module_named(e, &shape, args[0], out);
}

static const struct column_def object_columns[N_OBJECT_COLUMNS] = {
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
static const struct column_def module_columns[] = {
    {"module", COL_STR, 0, ""},
    {"package", COL_STR, 0, ""},
};
static const struct column_def table_columns[] = {
    {"name", COL_STR, 0, ""},    {"type", COL_STR, 0, ""},     {"description", COL_STR, 0, ""},
    {"exposed", COL_I64, 0, ""}, {"cols", COL_STR, 0, "JSON"},
};
static const struct column_def function_columns[] = {
    {"name", COL_STR, 0, ""},        {"description", COL_STR, 0, ""},
    {"exposed", COL_I64, 0, ""},     {"is_table_function", COL_I64, 0, ""},
    {"return_type", COL_STR, 0, ""}, {"return_description", COL_STR, 0, ""},
    {"args", COL_STR, 0, "JSON"},    {"cols", COL_STR, 0, "JSON"},
};
static const struct column_def macro_columns[] = {
    {"name", COL_STR, 0, ""},        {"description", COL_STR, 0, ""},        {"exposed", COL_I64, 0, ""},
    {"return_type", COL_STR, 0, ""}, {"return_description", COL_STR, 0, ""}, {"args", COL_STR, 0, "JSON"},
};

#define DEF(columns)                                                                                                   \
    {                                                                                                                  \
        "", columns, sizeof(columns) / sizeof(columns[0]), ""                                                          \
    }
static const struct table_def objects_def = DEF(object_columns), modules_def = DEF(module_columns),
                              tables_def = DEF(table_columns), functions_def = DEF(function_columns),
                              macros_def = DEF(macro_columns);

const struct engine_table_function stdlib_docs_table_functions[] = {
    {"__intrinsic_stdlib_objects", &objects_def, 0, ROWS_BOTH, stdlib_objects},
    {"__intrinsic_stdlib_modules", &modules_def, 0, ROWS_BOTH, stdlib_modules},
    {"__intrinsic_stdlib_tables", &tables_def, 1, ROWS_BOTH, stdlib_tables},
    {"__intrinsic_stdlib_functions", &functions_def, 1, ROWS_BOTH, stdlib_functions},
    {"__intrinsic_stdlib_macros", &macros_def, 1, ROWS_BOTH, stdlib_macros},
};
const size_t stdlib_docs_table_functions_n = sizeof stdlib_docs_table_functions / sizeof stdlib_docs_table_functions[0];
