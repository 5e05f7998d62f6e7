/* Results as tables for the eye: pages of 32 rows, so that a result of any length is shown as it comes. */
#include "shell/output_private.h"
#include "shell/text_width.h"

#include "base/alloc.h"

#include <string.h>

enum { ROWS_PER_PAGE = 32, MIN_WIDTH = 4, MAX_WIDTH = 60, NARROW = 8, CELL = 1024 };

/* What stands between the cells, and in the lines between the rows. */
struct style {
    const char *left, *between, *right;
    const char *rule;                           /* what horizontal lines are made of */
    const char *top[3], *middle[3], *bottom[3]; /* left, between, right of these lines; NULL: there is none */
    unsigned left_width, gap, right_width;
    bool repeats; /* each page of a table with columns of a fixed width has its header */
};
static const struct style plain = {"", " ", " ", "-", {0}, {"", " ", " "}, {0}, 0, 1, 1, true};
static const struct style box = {"│ ", " │ ", " │", "─",  {"┌─", "─┬─", "─┐"}, {"├─", "─┼─", "─┤"}, {"└─", "─┴─", "─┘"},
                                 2,    3,     2,    false};
static const struct style markdown = {"| ", " | ", " |", "-", {0}, {"| ", " | ", " |"}, {0}, 2, 3, 2, false};

struct page {
    const struct style *style;
    char *cells[ROWS_PER_PAGE]; /* the row's texts behind each other, each NUL-terminated */
    bool *right;                /* [columns] of the first row: numbers go to the right */
    unsigned *widths;
    int n_columns;
};

/* In markdown a bar would end the cell. */
static size_t escape_bars(char *cell, size_t len)
{
    for (size_t i = 0; i < len && len + 1 < CELL; i++) {
        if (cell[i] != '|')
            continue;
        memmove(cell + i + 1, cell + i, len - i + 1);
        cell[i++] = '\\';
        len++;
    }
    return len;
}

static char *row_text(struct page *page, const struct tp_result *r, bool first)
{
    char *row = mem_alloc((size_t)page->n_columns * CELL), *p = row;
    for (int c = 0; c < page->n_columns && row; c++) {
        enum tp_type type = tp_column_type(r, c);
        if (first)
            page->right[c] = type == TP_INT64 || type == TP_DOUBLE;
        size_t len = output_cell(r, c, p, CELL);
        if (page->style == &markdown)
            len = escape_bars(p, len);
        p += len + 1;
    }
    char *fits = row ? mem_realloc(row, (size_t)(p - row)) : NULL;
    return fits ? fits : row;
}

/* Text in exactly `width` columns: filled with blanks, or cut, with "…" where there is room for it. A number is not cut
 * without that mark: it would look like another number. */
static void put_cell(struct text_out *o, const char *s, unsigned width, bool right, bool mark)
{
    unsigned columns = text_width(s), taken = columns;
    size_t len = strlen(s);
    bool cut = columns > width && (mark || !right);
    if (cut)
        len = text_fit(s, mark && width > 1 ? width - 1 : width, &taken);
    if (right && columns < width)
        out_repeat(o, ' ', width - columns);
    out_bytes(o, s, len);
    if (cut && mark && width > 1) {
        out_text(o, "…");
        taken++;
    }
    if ((!right || cut) && taken < width)
        out_repeat(o, ' ', width - taken);
}

static void put_line(struct text_out *o, const struct page *page, const char *const ends[3], const char *rule)
{
    if (!ends[0])
        return;
    for (int c = 0; c < page->n_columns; c++) {
        out_text(o, ends[c > 0]);
        for (unsigned i = 0; i < page->widths[c]; i++)
            out_text(o, rule);
    }
    out_text(o, ends[2]);
    out_char(o, '\n');
}

static unsigned total_width(const struct page *page)
{
    unsigned n = page->style->left_width + page->style->right_width;
    for (int c = 0; c < page->n_columns; c++)
        n += page->widths[c] + (c ? page->style->gap : 0);
    return n;
}

/* The widest columns give way until the table fits the screen. */
static void shrink(struct page *page, unsigned screen)
{
    for (unsigned total = total_width(page); total > screen; total--) {
        int widest = 0;
        for (int c = 1; c < page->n_columns; c++)
            if (page->widths[c] > page->widths[widest])
                widest = c;
        if (page->widths[widest] <= MIN_WIDTH)
            return;
        page->widths[widest]--;
    }
}

static void fit_widths(struct page *page, const struct tp_result *r, int n_rows, unsigned screen)
{
    unsigned most = screen || page->style == &markdown ? CELL : MAX_WIDTH;
    char name[OUTPUT_NAME_MAX];
    for (int c = 0; c < page->n_columns; c++) { /* never narrower than on the page before */
        unsigned width = text_width(output_name(r, c, name));
        if (width > page->widths[c])
            page->widths[c] = width;
    }
    for (int i = 0; i < n_rows; i++) {
        const char *cell = page->cells[i];
        for (int c = 0; c < page->n_columns; c++, cell += strlen(cell) + 1) {
            unsigned width = text_width(cell);
            if (width > page->widths[c])
                page->widths[c] = width;
        }
    }
    for (int c = 0; c < page->n_columns; c++) {
        page->widths[c] = page->widths[c] < MIN_WIDTH ? MIN_WIDTH : page->widths[c];
        page->widths[c] = page->widths[c] > most ? most : page->widths[c];
    }
    if (screen)
        shrink(page, screen);
}

static void put_header(struct output *o, const struct page *page, const struct tp_result *r)
{
    put_line(o->out, page, page->style->top, page->style->rule);
    for (int c = 0; c < page->n_columns; c++) {
        char name[OUTPUT_NAME_MAX];
        out_text(o->out, c ? page->style->between : page->style->left);
        put_cell(o->out, output_name(r, c, name), page->widths[c], false, !o->width);
    }
    out_text(o->out, page->style->right);
    out_char(o->out, '\n');
    put_line(o->out, page, page->style->middle, page->style->rule);
}

static void put_rows(struct output *o, struct page *page, int n_rows)
{
    for (int i = 0; i < n_rows; i++) {
        const char *cell = page->cells[i];
        for (int c = 0; c < page->n_columns; c++, cell += strlen(cell) + 1) {
            out_text(o->out, c ? page->style->between : page->style->left);
            bool right = page->right[c] && strcmp(cell, "[NULL]") != 0;
            put_cell(o->out, cell, page->widths[c], right, !o->width);
        }
        out_text(o->out, page->style->right);
        out_char(o->out, '\n');
    }
}

/* The next rows, up to a page; *n how many. As tp_step(). */
static int read_page(struct page *page, struct tp_result *r, bool first, int *n)
{
    int rc = 1;
    for (*n = 0; *n < ROWS_PER_PAGE && (rc = tp_step(r)) == 1; ++*n) {
        page->cells[*n] = row_text(page, r, first && *n == 0);
        if (!page->cells[*n])
            return TP_NOMEM;
    }
    return rc;
}

static int64_t show_pages(struct output *o, struct page *page, struct tp_result *r)
{
    int64_t rows = 0;
    int rc = 1;
    while (rc == 1) {
        int n;
        rc = read_page(page, r, rows == 0, &n);
        if (!o->width)
            fit_widths(page, r, n, o->screen);
        for (int c = 0; c < page->n_columns && o->width; c++)
            page->widths[c] = o->width;
        bool go_on = rows == 0 || n == 0 || !o->more || o->more(o->more_ctx);
        if (n > 0 && go_on && (rows == 0 || (o->width && page->style->repeats)))
            put_header(o, page, r);
        put_rows(o, page, go_on ? n : 0);
        for (int i = 0; i < n; i++)
            mem_free(page->cells[i]);
        rows += go_on ? n : 0;
        if (!go_on || o->out->error)
            rc = rc < 0 ? rc : 0;
    }
    if (rows)
        put_line(o->out, page, page->style->bottom, page->style->rule);
    return rc < 0 ? rc : rows;
}

/* A table of so many columns that none could be read is shown a column a line. */
static bool is_too_wide(const struct output *o, const struct style *style, int n_columns)
{
    return o->screen && !o->width && style != &markdown &&
           (unsigned)n_columns * (NARROW + style->gap) > o->screen + style->gap;
}

int64_t output_table(struct output *o, struct tp_result *r)
{
    struct page page = {.n_columns = tp_columns(r),
                        .style = o->format == OUTPUT_BOX        ? &box
                                 : o->format == OUTPUT_MARKDOWN ? &markdown
                                                                : &plain};
    if (is_too_wide(o, page.style, page.n_columns))
        return output_line(o, r);
    page.widths = mem_zalloc((size_t)page.n_columns * sizeof *page.widths);
    page.right = mem_zalloc((size_t)page.n_columns * sizeof *page.right);
    int64_t rows = page.widths && page.right ? show_pages(o, &page, r) : TP_NOMEM;
    mem_free(page.widths);
    mem_free(page.right);
    return rows;
}

int64_t output_line(struct output *o, struct tp_result *r)
{
    char cell[1 << 14], name[OUTPUT_NAME_MAX];
    unsigned widest = 0;
    int n = tp_columns(r), rc;
    int64_t rows = 0;
    for (int c = 0; c < n; c++)
        if (text_width(output_name(r, c, name)) > widest)
            widest = text_width(name);
    for (; (rc = output_next(o, r)) == 1; rows++) {
        if (rows && rows % ROWS_PER_PAGE == 0 && o->more && !o->more(o->more_ctx))
            return rows;
        if (rows)
            out_char(o->out, '\n');
        for (int c = 0; c < n; c++) {
            out_repeat(o->out, ' ', widest - text_width(output_name(r, c, name)));
            out_text(o->out, name);
            out_text(o->out, " = ");
            out_bytes(o->out, cell, output_cell(r, c, cell, sizeof cell));
            out_char(o->out, '\n');
        }
    }
    return rc < 0 ? rc : rows;
}
