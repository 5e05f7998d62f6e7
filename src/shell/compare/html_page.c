/* Pages of HTML in one file without a network. */
#include "shell/compare/html_page.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

static const char style[] =
    "body{font:14px/1.45 system-ui,sans-serif;margin:24px auto;max-width:1240px;padding:0 16px;color:#1c2330;"
    "background:#fff}h1{font-size:22px}h2{font-size:17px;margin:28px 0 6px;border-bottom:1px solid #d8dde6}"
    "table{border-collapse:collapse;margin:6px 0;font-variant-numeric:tabular-nums}th,td{padding:2px 10px;"
    "text-align:left;border-bottom:1px solid #eceff4;vertical-align:top;overflow-wrap:anywhere}"
    "th{cursor:pointer;background:#f4f6fa;white-space:nowrap;user-select:none}th[aria-sort]{background:#dfe7f5}"
    "td.n{text-align:right;white-space:nowrap}details{margin:4px 0;color:#44506a}summary{cursor:pointer;"
    "font-size:12px}pre{background:#f4f6fa;padding:8px;overflow-x:auto;white-space:pre-wrap;font-size:12px}"
    "svg{max-width:100%;height:auto}.none{color:#68738a}.bad{color:#a5210b}";

static const char script[] =
    "addEventListener('click',function(e){var h=e.target.closest('th');if(!h)return;"
    "var t=h.closest('table'),b=t.tBodies[0],i=h.cellIndex,"
    "d=h.getAttribute('aria-sort')==='descending'?1:-1;"
    "[].forEach.call(t.tHead.rows[0].cells,function(c){c.removeAttribute('aria-sort')});"
    "h.setAttribute('aria-sort',d<0?'descending':'ascending');"
    "function v(r){var c=r.cells[i],n=c.getAttribute('data-n');return n===null?c.textContent:parseFloat(n)}"
    "[].slice.call(b.rows).sort(function(x,y){var p=v(x),q=v(y);return d*(p<q?-1:p>q?1:0)})"
    ".forEach(function(r){b.appendChild(r)})});";

void html_text(struct text_out *o, const char *s)
{
    static const char *const named[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};
    for (size_t i = 0, len = strlen(s); i < len;) {
        unsigned char c = (unsigned char)s[i];
        size_t n = utf8_sequence(s + i, len - i);
        if (named[c])
            out_text(o, named[c]);
        else if (!n || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            out_char(o, '?');
        else
            out_bytes(o, s + i, n);
        i += n ? n : 1;
    }
}

void html_begin(struct text_out *o, const char *title)
{
    out_text(o, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\""
                "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
                "'unsafe-inline'\">\n<title>");
    html_text(o, title);
    out_text(o, "</title>\n<style>");
    out_text(o, style);
    out_text(o, "</style></head><body>\n<h1>");
    html_text(o, title);
    out_text(o, "</h1>\n");
}

void html_end(struct text_out *o)
{
    out_text(o, "<script>");
    out_text(o, script);
    out_text(o, "</script>\n</body></html>\n");
}

void html_details(struct text_out *o, const char *summary, const char *text)
{
    out_text(o, "<details><summary>");
    html_text(o, summary);
    out_text(o, "</summary><pre>");
    html_text(o, text);
    out_text(o, "</pre></details>\n");
}

void html_table_begin(struct text_out *o, const char *const *headings, size_t n)
{
    out_text(o, "<table><thead><tr>");
    for (size_t i = 0; i < n; i++) {
        out_text(o, "<th>");
        html_text(o, headings[i]);
        out_text(o, "</th>");
    }
    out_text(o, "</tr></thead><tbody>\n");
}

void html_row_begin(struct text_out *o)
{
    out_text(o, "<tr>");
}

void html_cell_text(struct text_out *o, const char *s)
{
    out_text(o, "<td>");
    html_text(o, s);
    out_text(o, "</td>");
}

void html_cell_number(struct text_out *o, double v, const char *shown)
{
    if (isfinite(v))
        out_printf(o, "<td class=\"n\" data-n=\"%.9g\">", v);
    else
        out_printf(o, "<td class=\"n\" data-n=\"%s\">", isnan(v) ? "-1e300" : v > 0 ? "1e300" : "-1e300");
    html_text(o, shown);
    out_text(o, "</td>");
}

void html_row_end(struct text_out *o)
{
    out_text(o, "</tr>\n");
}

void html_table_end(struct text_out *o)
{
    out_text(o, "</tbody></table>\n");
}
