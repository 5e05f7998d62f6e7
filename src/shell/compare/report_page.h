/* A report as a page of HTML, and as Markdown. */
#ifndef MERIDIAN_SHELL_COMPARE_REPORT_PAGE_H
#define MERIDIAN_SHELL_COMPARE_REPORT_PAGE_H

#include "shell/compare/report_data.h"
#include "shell/text_out.h"

struct report {
    const char *trace;
    const struct report_table *tables; /* [n_report_sections] */
    const char *flame_graph;           /* SVG, or NULL */
    const char *no_flame_graph;        /* why there is none */
};

void report_html(struct text_out *o, const void *report);
void report_markdown(struct text_out *o, const void *report);

#endif
