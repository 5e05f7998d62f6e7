/* Text within the reports that CI systems read. */
#include "shell/report_text.h"

void report_xml(struct text_out *o, const char *s)
{
    static const char *const named[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&apos;"};
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (named[c])
            out_text(o, named[c]);
        else
            out_char(o, c < 0x20 && c != '\n' && c != '\t' ? '?' : (char)c);
    }
}

void report_github(struct text_out *o, const char *s, bool property)
{
    for (; *s; s++) {
        if (*s == '%' || *s == '\n' || *s == '\r' || (property && (*s == ':' || *s == ',')))
            out_printf(o, "%%%02X", (unsigned char)*s);
        else
            out_char(o, *s);
    }
}
