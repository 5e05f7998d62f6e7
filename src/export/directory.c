/* Writes tables and results as files of a directory. */
#include "export/directory.h"

#include "base/output_file.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "export/formats.h"
#include "export/native.h"
#include "export/source.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* One table or query that is asked for. */
struct job {
    char *name;
    const char *sql; /* NULL: a table */
};

struct run {
    struct engine *e;
    const struct export_request *what;
    const struct export_format *format;
    struct export_counts *counts;
    char trace[EXPORT_TRACE_ID_SIZE];
    VEC(struct job)
    jobs;
    VEC(char)
    create; /* schema.sql */
    struct export_buffer buffer;
    uint8_t *piece;
};

static int no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

/* ---- what is asked for ---- */

static bool is_file_name(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
              (name[i] >= '0' && name[i] <= '9') || name[i] == '_'))
            return false;
    return n > 0 && n <= 120;
}

static int add_job(struct run *r, const char *name, size_t n, const char *sql, struct error *err)
{
    if (!is_file_name(name, n))
        return error_set(err, -MRD_EINVALID, "export: invalid name '%.*s': use letters, digits and underscores",
                         (int)(n < 100 ? n : 100), name);
    for (size_t i = 0; i < r->jobs.n; i++)
        if (strlen(r->jobs.p[i].name) == n && strncmp(r->jobs.p[i].name, name, n) == 0)
            return error_set(err, -MRD_EINVALID, "export: '%.*s' is asked for twice; give the query another name",
                             (int)n, name);
    char *copy = mem_strndup(name, n);
    if (!copy || !vec_push(&r->jobs, (struct job){copy, sql})) {
        mem_free(copy);
        return no_memory(err);
    }
    return 0;
}

static int add_tables(struct run *r, struct error *err)
{
    int rc = 0;
    if (!r->what->tables && r->what->n_queries == 0)
        for (size_t i = 0; rc == 0 && export_table_name(i); i++)
            if (export_table_rows(r->e, i))
                rc = add_job(r, export_table_name(i), strlen(export_table_name(i)), NULL, err);
    for (const char *p = r->what->tables ? r->what->tables : ""; rc == 0 && *p;) {
        size_t n = strcspn(p, ",");
        rc = add_job(r, p, n, NULL, err);
        p += n + (p[n] == ',');
    }
    return rc;
}

static int add_queries(struct run *r, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->what->n_queries; i++) {
        const char *text = r->what->queries[i], *equals = strchr(text, '=');
        if (!equals || equals[1] == '\0')
            return error_set(err, -MRD_EINVALID,
                             "export: invalid query '%.100s': use name=SQL, e.g. 'long=SELECT * FROM slice WHERE dur > "
                             "1000000'",
                             text);
        rc = add_job(r, text, (size_t)(equals - text), equals + 1, err);
    }
    return rc;
}

/* ---- writing ---- */

static int to_file(void *self, const void *bytes, size_t n, struct error *err)
{
    return output_file_write(self, bytes, n, err);
}

/* CREATE TABLE for the schema, appended to schema.sql. */
static int describe(struct run *r, const struct export_schema *s, struct error *err)
{
    static const char order[] = ") ENGINE = MergeTree ORDER BY tuple();\n";
    bool ok = true;
    char line[400];
    for (size_t i = 0; i <= s->count && ok; i++) {
        int n = i == 0 ? snprintf(line, sizeof line, "CREATE TABLE `%s` (", s->table) : 0;
        if (i < s->count) {
            const struct export_column *c = &s->columns[i];
            bool low = r->format->block == export_native_block;
            char name[256];
            size_t to = 0;
            for (const char *p = c->name; *p && to < sizeof name - 2; p++) {
                if (*p == '`' || *p == '\\')
                    name[to++] = '\\';
                name[to++] = *p;
            }
            name[to] = '\0';
            n += snprintf(line + n, sizeof line - (size_t)n, "%s`%s` %s", i ? ", " : "", name, native_type(c, low));
        } else {
            n = snprintf(line, sizeof line, "%s", order);
        }
        ok = vec_reserve(&r->create, r->create.n + (size_t)n);
        if (ok) {
            memcpy(r->create.p + r->create.n, line, (size_t)n);
            r->create.n += (size_t)n;
        }
    }
    return ok ? 0 : no_memory(err);
}

static int write_blocks(struct run *r, struct export_source *source, struct output_file *file, struct error *err)
{
    const struct export_format *f = r->format;
    const struct export_sink sink = {to_file, file};
    struct export_writer w = {.schema = export_source_schema(source), .out = &r->buffer};
    struct export_block block;
    export_buffer_begin(&r->buffer, &sink, r->piece);
    int rc = f->begin ? f->begin(&w, err) : 0;
    while (rc >= 0 && r->buffer.rc == 0 && (rc = export_next(source, &block, err)) == 1) {
        r->counts->rows += block.rows;
        rc = f->block(&w, &block, err);
    }
    if (rc >= 0 && f->end)
        rc = f->end(&w, err);
    if (f->free)
        f->free(&w);
    if (rc >= 0)
        rc = export_buffer_flush(&r->buffer, err);
    r->counts->bytes += r->buffer.total;
    return rc;
}

static int open_in(const struct run *r, const char *name, const char *ending, struct output_file *file,
                   struct error *err)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s.%s", r->what->directory, name, ending) >= sizeof path)
        return error_set(err, -MRD_EINVALID, "export: the path of the directory is too long");
    return output_file_open(file, path, err);
}

static int write_job(struct run *r, const struct job *job, struct error *err)
{
    struct export_source *source = NULL;
    struct output_file file;
    int rc = job->sql ? export_open_query(&source, r->e, job->name, job->sql, r->trace, err)
                      : export_open_table(&source, r->e, job->name, r->trace, err);
    if (rc < 0) {
        error_prefix(err, "export: %s", job->name);
        return rc;
    }
    if (r->format->describe)
        rc = describe(r, export_source_schema(source), err);
    if (rc == 0)
        rc = open_in(r, job->name, r->format->ending, &file, err);
    if (rc == 0) {
        rc = write_blocks(r, source, &file, err);
        rc = output_file_close(&file, rc, err);
    }
    export_source_close(source);
    r->counts->files += rc == 0;
    return rc;
}

static int write_schema(struct run *r, struct error *err)
{
    struct output_file file;
    int rc = open_in(r, "schema", "sql", &file, err);
    if (rc < 0)
        return rc;
    rc = output_file_write(&file, r->create.p, r->create.n, err);
    return output_file_close(&file, rc, err);
}

static int unknown_format(const char *name, struct error *err)
{
    struct suggestion s = suggest(name, strlen(name));
    char text[80], all[200];
    size_t n = 0;
    for (size_t i = 0; i < n_export_formats; i++) {
        suggest_among(&s, export_formats[i].name);
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", export_formats[i].name);
    }
    suggest_among(&s, "sqlite");
    return error_set(err, -MRD_EINVALID, "export: unknown format '%s' (sqlite, %s)%s", name, all,
                     suggest_text(&s, "", text, sizeof text));
}

static int run_jobs(struct run *r, struct error *err)
{
    int rc = add_tables(r, err);
    if (rc == 0)
        rc = add_queries(r, err);
    if (rc == 0)
        rc = export_trace_id(r->e, r->what->files, r->what->n_files, r->trace, err);
    if (rc == 0 && mkdir(r->what->directory, 0777) < 0 && errno != EEXIST)
        rc = error_set_errno(err, errno, "export: cannot make the directory %s", r->what->directory);
    for (size_t i = 0; rc == 0 && i < r->jobs.n; i++)
        rc = write_job(r, &r->jobs.p[i], err);
    return rc == 0 && r->format->describe ? write_schema(r, err) : rc;
}

int export_directory(struct engine *e, const struct export_request *what, struct export_counts *counts,
                     struct error *err)
{
    struct run r = {.e = e, .what = what, .format = export_format_find(what->format), .counts = counts};
    *counts = (struct export_counts){0};
    if (!r.format)
        return unknown_format(what->format, err);
    r.piece = mem_alloc(EXPORT_BUFFER_BYTES);
    int rc = r.piece ? run_jobs(&r, err) : no_memory(err);
    for (size_t i = 0; i < r.jobs.n; i++)
        mem_free(r.jobs.p[i].name);
    vec_free(&r.jobs);
    vec_free(&r.create);
    mem_free(r.piece);
    return rc;
}
