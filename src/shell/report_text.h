/* Text within the reports that CI systems read: JUnit's XML, workflow commands of GitHub. */
#ifndef MERIDIAN_SHELL_REPORT_TEXT_H
#define MERIDIAN_SHELL_REPORT_TEXT_H

#include "shell/text_out.h"

#include <stdbool.h>

/* Text of an element or attribute; controls become '?'. */
void report_xml(struct text_out *o, const char *s);

/* The message of a workflow command, or the value of one of its properties: without line ends and separators. */
void report_github(struct text_out *o, const char *s, bool property);

#endif
