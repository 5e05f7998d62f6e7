/* Pages of HTML in one file without a network: tables that sort at a click, text to unfold. */
#ifndef MERIDIAN_SHELL_COMPARE_HTML_PAGE_H
#define MERIDIAN_SHELL_COMPARE_HTML_PAGE_H

#include "shell/text_out.h"

#include <stdbool.h>

/* Everything up to the body's heading `title`, style and script included. */
void html_begin(struct text_out *o, const char *title);
void html_end(struct text_out *o);

/* Text with what HTML reserves escaped; controls and what is not UTF-8 become '?'. Also for XML and SVG. */
void html_text(struct text_out *o, const char *s);

/* Text to unfold: the SQL behind a table, for instance. */
void html_details(struct text_out *o, const char *summary, const char *text);

/* A table that sorts at a click on a heading. Numbers stand at the right and sort as numbers. */
void html_table_begin(struct text_out *o, const char *const *headings, size_t n);
void html_row_begin(struct text_out *o);
void html_cell_text(struct text_out *o, const char *s);
void html_cell_number(struct text_out *o, double v, const char *shown);
void html_row_end(struct text_out *o);
void html_table_end(struct text_out *o);

#endif
