/* Pictures of a report's rows as SVG within a page. */
#ifndef MERIDIAN_SHELL_COMPARE_REPORT_SVG_H
#define MERIDIAN_SHELL_COMPARE_REPORT_SVG_H

#include "shell/compare/report_data.h"
#include "shell/compare/report_sections.h"
#include "shell/text_out.h"

/* Draws what the section asks for; false: out of memory. Nothing when there is nothing to draw. */
bool report_draw(struct text_out *o, const struct report_section *s, const struct report_table *t);

#endif
