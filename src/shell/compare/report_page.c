/* A report as a page of HTML, and as Markdown. */
#include "shell/compare/report_page.h"

#include "shell/compare/html_page.h"
#include "shell/compare/report_sections.h"
#include "shell/compare/report_svg.h"

#include <string.h>

enum { MARKDOWN_ROWS = 10 };

static void html_rows(struct text_out *o, const struct report_table *t)
{
    html_table_begin(o, t->headings, t->n_columns);
    for (size_t r = 0; r < report_rows(t); r++) {
        html_row_begin(o);
        for (size_t c = 0; c < t->n_columns; c++) {
            const struct report_cell *cell = report_cell(t, r, c);
            if (cell->is_number)
                html_cell_number(o, cell->number, cell->text);
            else
                html_cell_text(o, cell->text);
        }
        html_row_end(o);
    }
    html_table_end(o);
}

static void html_remark(struct text_out *o, const char *class, const char *text)
{
    out_printf(o, "<p class=\"%s\">", class);
    html_text(o, text);
    out_text(o, "</p>\n");
}

void report_html(struct text_out *o, const void *report)
{
    const struct report *r = report;
    const char *name = strrchr(r->trace, '/');
    html_begin(o, name ? name + 1 : r->trace);
    for (size_t i = 0; i < n_report_sections; i++) {
        const struct report_section *s = &report_sections[i];
        const struct report_table *t = &r->tables[i];
        out_text(o, "<section><h2>");
        html_text(o, s->title);
        out_text(o, "</h2>\n");
        if (report_rows(t)) {
            html_remark(o, "none", s->what);
            if (!report_draw(o, s, t))
                html_remark(o, "bad", "The picture could not be drawn: out of memory.");
            if (s->picture != PICTURE_AREAS)
                html_rows(o, t);
        } else {
            html_remark(o, t->problem ? "bad" : "none", t->problem ? t->problem : s->empty);
        }
        html_details(o, "SQL", s->sql);
        out_text(o, "</section>\n");
    }
    out_text(o, "<section><h2>Flame graph</h2>\n");
    if (r->flame_graph)
        out_text(o, r->flame_graph);
    else
        html_remark(o, "none", r->no_flame_graph);
    out_text(o, "</section>\n");
    html_end(o);
}

/* Text that Markdown takes as it is. */
static void markdown_text(struct text_out *o, const char *s)
{
    for (; *s; s++) {
        if (strchr("\\`*_[]<>|#", *s))
            out_char(o, '\\');
        out_char(o, (unsigned char)*s < ' ' ? ' ' : *s);
    }
}

static void markdown_rows(struct text_out *o, const struct report_table *t)
{
    size_t rows = report_rows(t);
    for (size_t c = 0; c < t->n_columns; c++) {
        out_text(o, c ? " | " : "| ");
        markdown_text(o, t->headings[c]);
    }
    out_text(o, " |\n");
    for (size_t c = 0; c < t->n_columns; c++)
        out_text(o, report_cell(t, 0, c)->is_number ? "|--:" : "|---");
    out_text(o, "|\n");
    for (size_t r = 0; r < rows && r < MARKDOWN_ROWS; r++) {
        for (size_t c = 0; c < t->n_columns; c++) {
            out_text(o, c ? " | " : "| ");
            markdown_text(o, report_cell(t, r, c)->text);
        }
        out_text(o, " |\n");
    }
    if (rows > MARKDOWN_ROWS)
        out_printf(o, "\n%zu more\n", rows - MARKDOWN_ROWS);
}

void report_markdown(struct text_out *o, const void *report)
{
    const struct report *r = report;
    out_text(o, "# ");
    markdown_text(o, r->trace);
    out_text(o, "\n");
    for (size_t i = 0; i < n_report_sections; i++) {
        const struct report_section *s = &report_sections[i];
        const struct report_table *t = &r->tables[i];
        if (s->picture == PICTURE_AREAS)
            continue;
        out_printf(o, "\n## %s\n\n", s->title);
        if (report_rows(t)) {
            markdown_rows(o, t);
        } else {
            markdown_text(o, t->problem ? t->problem : s->empty);
            out_text(o, "\n");
        }
    }
}
