/* tp_shell report: a trace as one page of HTML, or as Markdown. */
#include "base/file.h"
#include "shell/commands/compare_load.h"
#include "shell/compare/report_page.h"
#include "shell/compare/report_sections.h"
#include "shell/convert/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of a picture; and slices, which are read one by one: a million takes as long as the import. */
enum { LARGEST_FLAME_GRAPH = 1 << 20, MOST_SLICES = 200000 };

/* Writes the flame graph into a file and reads it back: its writer writes files. *svg is NULL when there is none. */
static int flame_graph(struct shell *sh, char **text, const char **svg, const char **why, struct error *err)
{
    struct report_table size;
    int sized = report_read(
        &size, sh->tp, "select iif((select count(*) from stack_sample) > 0, 0, (select count(*) from slice))", err);
    bool too_many = sized == 0 && report_rows(&size) && report_cell(&size, 0, 0)->number > MOST_SLICES;
    report_table_free(&size);
    *why = "There are more than 200,000 slices: tp_shell convert flamegraph TRACE OUT.svg draws them.";
    if (sized < 0 || too_many)
        return sized;
    const char *dir = getenv("TMPDIR");
    char path[4096];
    size_t len;
    struct error own = {0};
    snprintf(path, sizeof path, "%.4000s/tp_shell-report-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return error_set(err, -MRD_EIO, "%s: no temporary file can be made there; set TMPDIR", path);
    close(fd);
    struct out_file *out = out_file_open(path, sh->tp, &own);
    int rc = out ? convert_flamegraph(sh, out, &own) : own.code;
    rc = out_file_finish(out, rc, &own);
    if (rc == 0)
        rc = file_read_all(path, LARGEST_FLAME_GRAPH, text, &len, &own);
    unlink(path);
    *why = "The trace has neither call stacks nor slices.";
    if (rc == -MRD_ELIMIT)
        *why = "It is larger than a megabyte: tp_shell convert flamegraph TRACE OUT.svg writes it.";
    if (rc == -MRD_ENOTFOUND || rc == -MRD_ELIMIT)
        return 0;
    if (rc < 0)
        return error_set(err, rc, "%s", own.text);
    const char *begin = strstr(*text, "<svg"); /* behind the declaration of XML */
    *svg = begin;
    return 0;
}

static int read_section(struct shell *sh, const struct report_section *s, struct report_table *t, struct error *err)
{
    struct report_table size = {0};
    int rc = s->size ? report_read(&size, sh->tp, s->size, err) : 0;
    bool too_large = rc == 0 && report_rows(&size) && report_cell(&size, 0, 0)->number > s->most;
    report_table_free(&size);
    if (rc < 0)
        return rc;
    if (!too_large)
        return report_read(t, sh->tp, s->sql, err);
    t->problem = "Left out, as it takes long on a trace of this size: run the query below on a part of it.";
    return 0;
}

static int write_report(struct shell *sh, const char *path, struct report_table *tables, struct error *err)
{
    struct report r = {.trace = path, .tables = tables};
    char *text = NULL;
    int rc = 0;
    for (size_t i = 0; i < n_report_sections && rc == 0; i++)
        rc = read_section(sh, &report_sections[i], &tables[i], err);
    if (rc == 0 && !sh->opt.markdown)
        rc = flame_graph(sh, &text, &r.flame_graph, &r.no_flame_graph, err);
    if (rc == 0)
        rc = compare_write(sh->opt.output, sh->opt.markdown ? report_markdown : report_html, &r, err);
    mem_free(text);
    return rc;
}

int cmd_report(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    if (args->n != 1)
        return error_set(err, -MRD_EINVALID,
                         "report: one trace is needed, e.g. tp_shell report trace.pftrace -o report.html");
    if (!sh->opt.output && !sh->opt.markdown)
        return error_set(err, -MRD_EINVALID, "report: -o FILE is needed, where the page is written; or --markdown");
    struct report_table *tables = mem_zalloc(n_report_sections * sizeof *tables);
    if (!tables)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = compare_open(sh, args->p[0], err);
    if (rc == 0)
        rc = write_report(sh, args->p[0], tables, err);
    for (size_t i = 0; i < n_report_sections; i++)
        report_table_free(&tables[i]);
    mem_free(tables);
    return rc;
}
