/* Results as text. */
#include "shell/output.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_PER_PAGE = 32, MIN_WIDTH = 4, MAX_WIDTH = 60 };

const char *const output_format_names[OUTPUT_FORMATS] = {"csv", "table", "json", "jsonl"};

int output_format_find(const char *name)
{
    for (int i = 0; i < OUTPUT_FORMATS; i++)
        if (strcmp(name, output_format_names[i]) == 0)
            return i;
    return -1;
}

/* ---- CSV: strings are quoted but not escaped ---- */

static void csv_cell(struct text_out *o, const struct tp_result *r, int c)
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

static int64_t show_csv(struct output *o, struct tp_result *r)
{
    int n = tp_columns(r), rc;
    int64_t rows = 0;
    for (int c = 0; c < n; c++) {
        out_text(o->out, c ? ",\"" : "\"");
        out_text(o->out, tp_column_name(r, c));
        out_char(o->out, '"');
    }
    out_char(o->out, '\n');
    for (; (rc = tp_step(r)) == 1; rows++) {
        for (int c = 0; c < n; c++) {
            if (c)
                out_char(o->out, ',');
            csv_cell(o->out, r, c);
        }
        out_char(o->out, '\n');
    }
    return rc < 0 ? rc : rows;
}

/* ---- JSON ---- */

/* The fewest digits that read back as the same number. */
static void json_double(struct text_out *o, double v)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    out_text(o, text);
}

static void json_cell(struct text_out *o, const struct tp_result *r, int c)
{
    size_t len;
    switch (tp_column_type(r, c)) {
    case TP_NULL:
        out_text(o, "null");
        break;
    case TP_INT64:
        out_int(o, tp_int64(r, c));
        break;
    case TP_DOUBLE: {
        double v = tp_double(r, c);
        if (isfinite(v))
            json_double(o, v);
        else
            out_text(o, "null"); /* JSON has no word for it */
        break;
    }
    case TP_TEXT: {
        const char *text = tp_text(r, c, &len);
        out_json_string(o, text, len);
        break;
    }
    case TP_BLOB: {
        const unsigned char *bytes = tp_blob(r, c, &len);
        out_char(o, '"');
        for (size_t i = 0; i < len; i++)
            out_printf(o, "%02x", bytes[i]);
        out_char(o, '"');
        break;
    }
    }
}

/* The key of a column; a name that an earlier column has already gets a number, as objects need distinct keys. */
static void json_key(struct text_out *o, const struct tp_result *r, int c)
{
    const char *name = tp_column_name(r, c);
    int same = 0;
    for (int before = 0; before < c; before++)
        same += strcmp(tp_column_name(r, before), name) == 0;
    char numbered[256];
    if (same) {
        snprintf(numbered, sizeof numbered, "%s_%d", name, same + 1);
        name = numbered;
    }
    out_json_string(o, name, strlen(name));
}

/* Names of all columns as they stand in each object, "\"a\": " behind each other: rendered once. */
struct json_keys {
    struct text_out text;
    size_t ends[]; /* [columns] */
};

static struct json_keys *json_keys_make(const struct tp_result *r)
{
    int n = tp_columns(r);
    struct json_keys *keys = mem_alloc(sizeof *keys + (size_t)n * sizeof *keys->ends);
    if (!keys)
        return NULL;
    out_init(&keys->text, -1);
    for (int c = 0; c < n; c++) {
        out_text(&keys->text, c ? ", " : "");
        json_key(&keys->text, r, c);
        out_text(&keys->text, ": ");
        keys->ends[c] = keys->text.n;
    }
    if (keys->text.error) { /* names of more than the buffer holds */
        mem_free(keys);
        return NULL;
    }
    return keys;
}

static int64_t show_json(struct output *o, struct tp_result *r)
{
    bool array = o->format == OUTPUT_JSON;
    int n = tp_columns(r), rc;
    int64_t rows = 0;
    struct json_keys *keys = json_keys_make(r);
    if (!keys)
        return TP_NOMEM;
    if (array)
        out_char(o->out, '[');
    for (; (rc = tp_step(r)) == 1; rows++) {
        if (array)
            out_text(o->out, rows ? ",\n " : "\n ");
        out_char(o->out, '{');
        size_t at = 0;
        for (int c = 0; c < n; at = keys->ends[c++]) {
            out_bytes(o->out, keys->text.buf + at, keys->ends[c] - at);
            json_cell(o->out, r, c);
        }
        out_text(o->out, array ? "}" : "}\n");
    }
    if (array)
        out_text(o->out, rows ? "\n]\n" : "]\n");
    mem_free(keys);
    return rc < 0 ? rc : rows;
}

/* ---- tables: pages of 32 rows, each below the column names ---- */

struct page {
    char *cells[ROWS_PER_PAGE]; /* the row's texts behind each other, each NUL-terminated */
    bool *right;                /* [columns] of the first row: numbers go to the right */
    unsigned *widths;
    int n_columns;
};

/* Columns that a UTF-8 text takes, counting each character as one. */
static unsigned text_columns(const char *s)
{
    unsigned n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* One line of whole characters: controls, also those beyond ASCII that terminals obey, become blanks, and bytes that
 * are no UTF-8 question marks. Cut where `room` ends. The length without the NUL. */
static size_t plain_text(const char *text, size_t len, char *to, size_t room)
{
    size_t n = 0;
    for (size_t i = 0, c; i < len; i += c ? c : 1) {
        c = utf8_sequence(text + i, len - i);
        if (n + (c ? c : 1) >= room)
            break;
        bool control = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ||
                       (c == 2 && (unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
        if (c == 0 || control)
            to[n++] = c ? ' ' : '?';
        else
            for (size_t k = 0; k < c; k++)
                to[n++] = text[i + k];
    }
    to[n] = '\0';
    return n;
}

/* A cell's text as it is shown. The length with the NUL. */
static size_t cell_text(const struct tp_result *r, int c, char *to, size_t room)
{
    int n = 0;
    size_t len;
    switch (tp_column_type(r, c)) {
    case TP_NULL:
        n = snprintf(to, room, "[NULL]");
        break;
    case TP_INT64:
        n = snprintf(to, room, "%lld", (long long)tp_int64(r, c));
        break;
    case TP_DOUBLE:
        n = snprintf(to, room, "%f", tp_double(r, c));
        break;
    case TP_BLOB:
        n = snprintf(to, room, "<raw bytes>");
        break;
    case TP_TEXT: {
        const char *text = tp_text(r, c, &len);
        n = (int)plain_text(text, strnlen(text, len), to, room);
        break;
    }
    }
    return (size_t)n < room ? (size_t)n + 1 : room;
}

/* Text in exactly `width` columns: cut, or filled with blanks. */
static void put_cell(struct text_out *o, const char *s, unsigned width, bool right)
{
    unsigned columns = text_columns(s);
    if (right && columns < width)
        out_repeat(o, ' ', width - columns);
    unsigned taken = 0;
    for (; *s; s++) {
        if (((unsigned char)*s & 0xc0) != 0x80 && ++taken > width && !right)
            break;
        out_char(o, *s);
    }
    if (!right && columns < width)
        out_repeat(o, ' ', width - columns);
    out_char(o, ' ');
}

static char *row_text(struct page *page, const struct tp_result *r, bool first)
{
    enum { CELL = 1024 };
    char *row = mem_alloc((size_t)page->n_columns * CELL), *p = row;
    for (int c = 0; c < page->n_columns && row; c++) {
        enum tp_type type = tp_column_type(r, c);
        if (first)
            page->right[c] = type == TP_INT64 || type == TP_DOUBLE;
        p += cell_text(r, c, p, CELL);
    }
    char *fits = row ? mem_realloc(row, (size_t)(p - row)) : NULL;
    return fits ? fits : row;
}

static void fit_widths(struct page *page, const struct tp_result *r, int n_rows)
{
    for (int c = 0; c < page->n_columns; c++) /* never narrower than on the page before */
        if (text_columns(tp_column_name(r, c)) > page->widths[c])
            page->widths[c] = text_columns(tp_column_name(r, c));
    for (int i = 0; i < n_rows; i++) {
        const char *cell = page->cells[i];
        for (int c = 0; c < page->n_columns; c++, cell += strlen(cell) + 1)
            if (text_columns(cell) > page->widths[c])
                page->widths[c] = text_columns(cell);
    }
    for (int c = 0; c < page->n_columns; c++) {
        page->widths[c] = page->widths[c] < MIN_WIDTH ? MIN_WIDTH : page->widths[c];
        page->widths[c] = page->widths[c] > MAX_WIDTH ? MAX_WIDTH : page->widths[c];
    }
}

static void put_page(struct output *o, struct page *page, const struct tp_result *r, int n_rows, bool header)
{
    for (int c = 0; c < page->n_columns && header; c++) {
        char name[256];
        plain_text(tp_column_name(r, c), strlen(tp_column_name(r, c)), name, sizeof name);
        put_cell(o->out, name, page->widths[c], false);
    }
    if (header)
        out_char(o->out, '\n');
    for (int c = 0; c < page->n_columns && header; c++) {
        out_repeat(o->out, '-', page->widths[c]);
        out_char(o->out, ' ');
    }
    if (header)
        out_char(o->out, '\n');
    for (int i = 0; i < n_rows; i++) {
        const char *cell = page->cells[i];
        for (int c = 0; c < page->n_columns; c++, cell += strlen(cell) + 1)
            put_cell(o->out, cell, page->widths[c], page->right[c] && strcmp(cell, "[NULL]") != 0);
        out_char(o->out, '\n');
        mem_free(page->cells[i]);
    }
}

static int64_t show_table(struct output *o, struct tp_result *r)
{
    struct page page = {.n_columns = tp_columns(r)};
    page.widths = mem_zalloc((size_t)page.n_columns * sizeof *page.widths);
    page.right = mem_zalloc((size_t)page.n_columns * sizeof *page.right);
    int64_t rows = 0;
    int rc = page.widths && page.right ? 1 : TP_NOMEM;
    bool repeat = o->width > 0; /* the interactive table names its columns on each page */
    while (rc == 1) {
        int n = 0;
        while (n < ROWS_PER_PAGE && (rc = tp_step(r)) == 1) {
            page.cells[n] = row_text(&page, r, rows + n == 0);
            if (!page.cells[n]) {
                rc = TP_NOMEM;
                break;
            }
            n++;
        }
        if (!o->width)
            fit_widths(&page, r, n);
        for (int c = 0; c < page.n_columns && o->width; c++)
            page.widths[c] = o->width;
        bool go_on = rows == 0 || n == 0 || !o->more || o->more(o->more_ctx);
        put_page(o, &page, r, go_on ? n : 0, n > 0 && go_on && (rows == 0 || repeat));
        for (int i = 0; i < n && !go_on; i++)
            mem_free(page.cells[i]);
        rows += go_on ? n : 0;
        if (!go_on)
            rc = 0;
    }
    mem_free(page.widths);
    mem_free(page.right);
    return rc < 0 ? rc : rows;
}

int64_t output_result(struct output *o, struct tp_result *r)
{
    static int64_t (*const show[OUTPUT_FORMATS])(struct output *, struct tp_result *) = {
        [OUTPUT_CSV] = show_csv, [OUTPUT_TABLE] = show_table, [OUTPUT_JSON] = show_json, [OUTPUT_JSONL] = show_json};
    int n = tp_columns(r);
    if (n == 0 || (n == 1 && strcmp(tp_column_name(r, 0), "suppress_query_output") == 0)) {
        int rc;
        while ((rc = tp_step(r)) == 1)
            ;
        return rc;
    }
    if (o->results++ && (o->format == OUTPUT_CSV || (o->format == OUTPUT_TABLE && !o->width)))
        out_char(o->out, '\n');
    return show[o->format](o, r);
}
