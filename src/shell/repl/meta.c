/* The dot commands of the interactive shell. */
#include "base/suggest.h"
#include "shell/did_you_mean.h"
#include "shell/names.h"
#include "shell/repl/repl.h"
#include "shell/ticker.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SCRIPT_BYTES = 64 << 20 };

static void meta_help(struct repl *r, const char *arg);

static void meta_quit(struct repl *r, const char *arg)
{
    (void)arg;
    r->quit = true;
}

static void usage(struct repl *r, const char *text)
{
    r->failed = true;
    fprintf(stderr, "usage: %s\n", text);
}

static void tell_failure(struct repl *r, const struct error *err)
{
    r->failed = true;
    if (err->code == -MRD_ESQL)
        shell_tell_error(r->sh->tp);
    else
        fprintf(stderr, "%s\n", err->text);
}

/* Ctrl-C ends it and leaves no half of a file. */
static void export_tables(struct repl *r, const char *path)
{
    struct ticker ticker;
    interrupt_target(r->sh->tp);
    ticker_start(&ticker, "Exporting", true);
    int rc = tp_export_sqlite(r->sh->tp, path);
    ticker_stop(&ticker);
    interrupt_target(NULL);
    interrupt_taken();
    r->failed |= rc < 0;
    if (rc < 0)
        fprintf(stderr, "%s\n", tp_error(r->sh->tp));
    else
        fprintf(stderr, "written: %s\n", path);
}

static void meta_dump(struct repl *r, const char *arg)
{
    if (!arg[0])
        usage(r, ".dump FILE");
    else
        export_tables(r, arg);
}

static void meta_read(struct repl *r, const char *arg)
{
    char *text;
    size_t len;
    struct error err = {0};
    if (!arg[0]) {
        usage(r, ".read FILE");
        return;
    }
    if (file_read_all(arg, MAX_SCRIPT_BYTES, &text, &len, &err) < 0) {
        tell_failure(r, &err);
        return;
    }
    interrupt_target(r->sh->tp);
    int rc = shell_run_sql(r->sh, arg, text, len, r->format == OUTPUT_TABLE ? OUTPUT_CLASSIC : r->format, 0, &err);
    interrupt_target(NULL);
    interrupt_taken();
    if (rc < 0)
        tell_failure(r, &err);
    mem_free(text);
}

static void meta_reset(struct repl *r, const char *arg)
{
    (void)arg;
    if (tp_restore_initial_tables(r->sh->tp) < 0)
        fprintf(stderr, "%s\n", tp_error(r->sh->tp));
}

static void meta_width(struct repl *r, const char *arg)
{
    char *end;
    long n = strtol(arg, &end, 10);
    if (strcmp(arg, "auto") == 0)
        r->width = 0;
    else if (!arg[0] || *end || n < 1 || n > 10000)
        usage(r, ".width auto|N (1 to 10000)");
    else
        r->width = (unsigned)n;
}

#define MODES "table|box|markdown|line|csv|json|jsonl|classic"

static void refuse_mode(struct repl *r, const char *arg)
{
    struct error err = {0};
    if (arg[0]) {
        suggest_refuse(&err, ".mode", arg, output_format_names, OUTPUT_FORMATS);
        fprintf(stderr, "%s\n", err.text);
    }
    usage(r, ".mode " MODES);
}

static void meta_mode(struct repl *r, const char *arg)
{
    int format = output_format_find(arg);
    if (format < 0)
        refuse_mode(r, arg);
    else
        r->format = (enum output_format)format;
}

static void meta_timer(struct repl *r, const char *arg)
{
    if (strcmp(arg, "on") == 0 || strcmp(arg, "off") == 0)
        r->timer = arg[1] == 'n';
    else
        usage(r, ".timer on|off");
}

/* Runs a query made of `fmt` with the argument as an SQL string in place of %s, and prints its first column. */
static void print_column(struct repl *r, const char *before, const char *arg, const char *after, int per_line)
{
    size_t room = strlen(before) + 2 * strlen(arg) + strlen(after) + 1;
    char *sql = mem_alloc(room), *p = sql;
    if (!sql)
        return;
    p = stpcpy(p, before);
    for (const char *a = arg; *a; a++) {
        if (*a == '\'')
            *p++ = '\'';
        *p++ = *a;
    }
    stpcpy(p, after);
    struct tp_result *result = NULL;
    int rc = tp_query(r->sh->tp, sql, &result), n = 0;
    while (rc == 0 && tp_step(result) == 1) {
        const char *text = tp_text(result, 0, NULL);
        printf(++n % per_line ? "%-38s " : "%s\n", text ? text : "");
    }
    if (n % per_line)
        printf("\n");
    if (rc < 0)
        fprintf(stderr, "%s\n", tp_error(r->sh->tp));
    else
        tp_result_close(result);
    if (rc == 0 && n == 0)
        fprintf(stderr, "nothing matches '%s'\n", arg);
    fflush(stdout);
    mem_free(sql);
}

static void meta_tables(struct repl *r, const char *arg)
{
    if (arg[0])
        print_column(r, "SELECT DISTINCT name FROM (" SHELL_TABLE_NAMES ") WHERE name GLOB '", arg, "' ORDER BY name",
                     2);
    else if (repl_table_groups(r) < 0)
        shell_tell_error(r->sh->tp);
}

static void meta_schema(struct repl *r, const char *arg)
{
    if (!arg[0]) {
        usage(r, ".schema TABLE");
        return;
    }
    /* What the standard library or, for a built-in table, tables.def says of the object and of each column. */
    print_column(r, "WITH asked(x) AS (VALUES ('", arg,
                 "')), object AS (SELECT description, cols FROM __intrinsic_stdlib_objects, asked WHERE name = x AND "
                 "cols != '[]' LIMIT 1), "
                 "built_in AS (SELECT column_name AS name, description AS doc FROM _meridian_table_docs, asked "
                 "WHERE table_name = x), "
                 "known AS (SELECT value ->> 'name' AS name, value ->> 'type' AS type, value ->> 'description' AS doc "
                 "FROM object, json_each(cols) UNION ALL SELECT name, NULL, doc FROM built_in WHERE name IS NOT NULL) "
                 "SELECT '-- ' || description FROM object WHERE description != '' UNION ALL "
                 "SELECT '-- ' || doc FROM built_in WHERE name IS NULL UNION ALL "
                 "SELECT rtrim(printf('%-24s %-26s %s', c.name, coalesce(k.type, c.type), coalesce(k.doc, ''))) "
                 "FROM asked, pragma_table_info(x) AS c LEFT JOIN known AS k ON k.name = c.name",
                 1);
}

static void meta_output(struct repl *r, const char *arg)
{
    repl_output(r, arg, false);
}

static void meta_once(struct repl *r, const char *arg)
{
    if (arg[0])
        repl_output(r, arg, true);
    else
        usage(r, ".once FILE");
}

static void meta_pager(struct repl *r, const char *arg)
{
    if (strcmp(arg, "off") == 0)
        r->pager.command = NULL;
    else if (strcmp(arg, "on") == 0)
        pager_find(&r->pager);
    else
        usage(r, ".pager on|off (PAGER in the environment says which)");
}

/* What the library and the built-in tables say of an object, whatever it is. */
static void meta_docs(struct repl *r, const char *arg)
{
    if (!arg[0]) {
        usage(r, ".docs NAME (a table, view, function, macro or module)");
        return;
    }
    print_column(
        r, "WITH asked(x) AS (VALUES ('", arg,
        "')), object AS (SELECT * FROM __intrinsic_stdlib_objects, asked WHERE name = x OR module = x), "
        "member(what, list) AS (VALUES ('  argument ', 1), ('  column ', 2)) "
        "SELECT lower(replace(object_type, '_', ' ')) || ' ' || name || iif(module LIKE 'prelude%', '', '    "
        "INCLUDE PERFETTO MODULE ' || module || ';') || char(10) || description || "
        "coalesce((SELECT group_concat(char(10) || what || (value ->> 'name') || '  ' || (value ->> 'type') || '  ' || "
        "coalesce(value ->> 'description', ''), '') FROM member, json_each(iif(list = 1, args, cols)) WHERE name = "
        "(SELECT x FROM asked)), '') || iif(return_type != '', char(10) || '  returns ' || return_type || '  ' || "
        "return_description, '') || char(10) FROM object WHERE object_type != 'MODULE' OR name = (SELECT x FROM asked) "
        "UNION ALL SELECT iif(column_name IS NULL, 'table ' || table_name || char(10) || description, '  column ' || "
        "column_name || '  ' || description) FROM _meridian_table_docs, asked WHERE table_name = x AND NOT EXISTS "
        "(SELECT 1 FROM object)",
        1);
}

static void meta_no_metrics(struct repl *r, const char *arg)
{
    (void)r, (void)arg;
    fprintf(stderr, "%s\n", SHELL_NO_METRICS);
}

static const struct {
    const char *name;
    const char *argument;
    const char *help;
    void (*run)(struct repl *r, const char *arg);
} metas[] = {
    {".docs", "NAME", "what a table, function, macro or module is for", meta_docs},
    {".dump", "FILE", "write the tables as an SQLite database", meta_dump},
    {".help", "", "this list", meta_help},
    {".load-metrics-sql", "", "(not available yet: see tp_shell summarize)", meta_no_metrics},
    {".mode", MODES, "how to print", meta_mode},
    {".once", "FILE", "the next answer goes into a file", meta_once},
    {".output", "[FILE]", "answers go into a file; without one: to the terminal again", meta_output},
    {".pager", "on|off", "long answers go through a pager", meta_pager},
    {".plot", "[KIND] [SELECT …]", "draw the last answer, or this one: bars, line, hist or spark", repl_plot},
    {".q", "", "leave the shell", meta_quit},
    {".quit", "", "leave the shell", meta_quit},
    {".read", "FILE", "run the SQL of a file; results as CSV", meta_read},
    {".reset", "", "delete all tables, views and functions made here", meta_reset},
    {".run-metrics", "", "(not available yet: see tp_shell summarize)", meta_no_metrics},
    {".schema", "TABLE", "the columns of a table", meta_schema},
    {".tables", "[GLOB]", "the tables that have rows, by what they are about; or the names of all that match",
     meta_tables},
    {".timer", "on|off", "print how long queries take", meta_timer},
    {".width", "auto|N", "columns of a table are N wide, or as their content and the terminal want", meta_width},
};

const char *repl_meta_name(size_t i)
{
    return i < sizeof metas / sizeof *metas ? metas[i].name : NULL;
}

static void meta_help(struct repl *r, const char *arg)
{
    (void)r, (void)arg;
    printf("A statement ends with ';' or an empty line. Ctrl-C stops a query, Ctrl-D leaves.\n");
    for (size_t i = 0; i < sizeof metas / sizeof *metas; i++)
        printf("  %-18s %-22s %s\n", metas[i].name, metas[i].argument, metas[i].help);
    fflush(stdout);
}

void repl_meta(struct repl *r, const char *line)
{
    char name[64], arg[PATH_MAX];
    size_t len = strcspn(line, " \t");
    const char *rest = line + len + strspn(line + len, " \t");
    size_t rest_len = strlen(rest);
    while (rest_len && strchr(" \t;", rest[rest_len - 1]))
        rest_len--;
    snprintf(name, sizeof name, "%.*s", (int)len, line);
    name[strcspn(name, ";")] = '\0';
    snprintf(arg, sizeof arg, "%.*s", (int)rest_len, rest);
    for (size_t i = 0; i < sizeof metas / sizeof *metas; i++)
        if (strcmp(metas[i].name, name) == 0) {
            metas[i].run(r, arg);
            return;
        }
    struct suggestion s = suggest(name, strlen(name));
    char near[80];
    for (size_t i = 0; i < sizeof metas / sizeof *metas; i++)
        suggest_among(&s, metas[i].name);
    r->failed = true;
    fprintf(stderr, "unknown command %s%s\n", name, suggest_text(&s, "", near, sizeof near));
    if (!s.best)
        meta_help(r, "");
}
