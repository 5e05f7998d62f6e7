/* Results as CSV: as Perfetto's shell writes it, and as RFC 4180 has it. */
#include "shell/output_private.h"

#include <math.h>
#include <string.h>

/* ---- Perfetto's: strings are quoted but not escaped ---- */

static void classic_cell(struct text_out *o, const struct tp_result *r, int c)
{
    size_t len;
    switch (tp_column_type(r, c)) {
    case TP_NULL:
        out_text(o, "\"[NULL]\"");
        break;
    case TP_INT64:
        out_int(o, tp_int64(r, c));
        break;
    case TP_DOUBLE:
        out_printf(o, "%f", tp_double(r, c));
        break;
    case TP_TEXT: {
        const char *text = tp_text(r, c, &len);
        out_char(o, '"');
        out_bytes(o, text, strnlen(text, len)); /* up to a NUL, as C strings go */
        out_char(o, '"');
        break;
    }
    case TP_BLOB:
        out_text(o, "\"<raw bytes>\"");
        break;
    }
}

int64_t output_classic(struct output *o, struct tp_result *r)
{
    int n = tp_columns(r), rc;
    int64_t rows = 0;
    for (int c = 0; c < n; c++) {
        out_text(o->out, c ? ",\"" : "\"");
        out_text(o->out, tp_column_name(r, c));
        out_char(o->out, '"');
    }
    out_char(o->out, '\n');
    for (; (rc = output_next(o, r)) == 1; rows++) {
        for (int c = 0; c < n; c++) {
            if (c)
                out_char(o->out, ',');
            classic_cell(o->out, r, c);
        }
        out_char(o->out, '\n');
    }
    return rc < 0 ? rc : rows;
}

/* ---- RFC 4180; lines end with a newline alone, as tools of Unix want them ---- */

static void csv_cell(struct text_out *o, const struct tp_result *r, int c)
{
    size_t len;
    double v;
    switch (tp_column_type(r, c)) {
    case TP_NULL:
        break;
    case TP_INT64:
        out_int(o, tp_int64(r, c));
        break;
    case TP_DOUBLE:
        v = tp_double(r, c);
        if (isfinite(v))
            output_double(o, v);
        else
            out_text(o, v != v ? "NaN" : v < 0 ? "-Inf" : "Inf");
        break;
    case TP_TEXT: {
        const char *text = tp_text(r, c, &len);
        out_csv_text(o, text, len);
        break;
    }
    case TP_BLOB:
        output_hex(o, r, c);
        break;
    }
}

int64_t output_csv(struct output *o, struct tp_result *r)
{
    int n = tp_columns(r), rc;
    int64_t rows = 0;
    for (int c = 0; c < n; c++) {
        if (c)
            out_char(o->out, ',');
        out_csv_text(o->out, tp_column_name(r, c), strlen(tp_column_name(r, c)));
    }
    out_char(o->out, '\n');
    for (; (rc = output_next(o, r)) == 1; rows++) {
        for (int c = 0; c < n; c++) {
            if (c)
                out_char(o->out, ',');
            csv_cell(o->out, r, c);
        }
        out_char(o->out, '\n');
    }
    return rc < 0 ? rc : rows;
}
