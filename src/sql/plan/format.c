/* Texts that are put together here, not by SQLite: printf() and format() of plain conversions, `||`, json_object(),
 * json_array(); and length(). What they give is what SQLite's functions give; where that is not sure (an infinite
 * number in JSON) SQLite is asked. */
#include "base/decimal.h"
#include "sql/plan/plan_private.h"

#include <math.h>
#include <string.h>

enum piece_kind {
    PIECE_CONST,
    PIECE_PLAIN,  /* a value, as CAST AS TEXT gives it */
    PIECE_STRING, /* of printf: up to the first NUL; NULL is nothing */
    PIECE_INTEGER,
    PIECE_REAL,
    PIECE_JSON,
    PIECE_LABEL, /* of JSON: no NULL */
    PIECE_CALL   /* what `call` makes of it and of `text` */
};

struct plan_piece {
    uint8_t kind; /* enum piece_kind */
    uint8_t arg;
    bool left;            /* PIECE_STRING: spaces come behind it */
    int width, precision; /* the same; -1: none */
    struct slice text;    /* PIECE_CONST; of numbers the conversion, NUL-terminated */
    format_call *call;
};

struct plan_format {
    bool counts;  /* length(): of the text, or of the only argument where there are no pieces */
    bool spreads; /* NULL in a part makes NULL of all */
    uint32_t n;
    struct plan_piece pieces[];
};

enum { MAX_PIECES = 64, MOST_WIDTH = 100, NUMBER_ROOM = 600, MOST_TEXT = 1 << 20 };

/* ---- reading ---- */

struct pieces {
    struct plan_piece of[MAX_PIECES];
    uint32_t n;
};

static bool add(struct pieces *list, struct plan_piece piece)
{
    if (list->n == MAX_PIECES)
        return false;
    list->of[list->n++] = piece;
    return true;
}

static bool add_text(struct query_plan *p, struct pieces *list, const char *text, size_t len)
{
    const char *copy = len ? arena_strndup(&p->arena, text, len) : "";
    return !len || (copy && add(list, (struct plan_piece){.kind = PIECE_CONST, .text = slice_of(copy, len)}));
}

static bool keep(struct query_plan *p, struct plan_expr *x, const struct pieces *list, struct plan_format head)
{
    struct plan_format *f = arena_zalloc(&p->arena, sizeof *f + list->n * sizeof *f->pieces);
    if (!f)
        return false;
    *f = head;
    f->n = list->n;
    memcpy(f->pieces, list->of, list->n * sizeof *f->pieces);
    x->format = f;
    return true;
}

static int read_number(const char **at)
{
    int n = 0;
    while (**at >= '0' && **at <= '9' && n <= MOST_WIDTH)
        n = n * 10 + *(*at)++ - '0';
    return n;
}

/* Does a value of that type go with the conversion? */
static bool fits(char conversion, enum plan_type type)
{
    return strchr("diuxXofeEgG", conversion) ? type != PLAN_TEXT : conversion == 's';
}

/* One conversion, behind its `%`; false: SQLite shall do it. */
static bool read_conversion(struct query_plan *p, struct pieces *list, const struct plan_expr *x, const char **at,
                            uint32_t *arg)
{
    const char *flags = *at;
    *at += strspn(*at, "-+ #!0,");
    size_t n_flags = (size_t)(*at - flags);
    const char *size = *at;
    struct plan_piece piece = {.width = read_number(at), .precision = -1};
    if (**at == '.') {
        ++*at;
        piece.precision = read_number(at);
    }
    size_t n_size = (size_t)(*at - size);
    *at += strspn(*at, "l");
    char c = *(*at)++;
    if (!c || *arg >= x->n_args || !fits(c, (enum plan_type)x->args[*arg]->type) || piece.width > MOST_WIDTH ||
        piece.precision > MOST_WIDTH)
        return false;
    piece.arg = (uint8_t)(*arg)++;
    if (c == 's') {
        piece.kind = PIECE_STRING;
        piece.left = n_flags == 1 && *flags == '-';
        return (!n_flags || piece.left) && add(list, piece);
    }
    bool real = strchr("feEgG", c) != NULL;
    piece.kind = real ? PIECE_REAL : PIECE_INTEGER;
    bool plain = c == 'd' && !n_flags && !n_size; /* by far the most */
    const char *spec =
        plain ? ""
              : arena_printf(&p->arena, "%%%.*s%.*s%s%c", (int)n_flags, flags, (int)n_size, size, real ? "" : "ll", c);
    piece.text = slice_str(spec ? spec : "");
    return spec && add(list, piece);
}

bool format_read_printf(struct query_plan *p, const struct strpool *strings, struct plan_expr *x)
{
    struct pieces list = {.n = 0};
    struct slice format = strpool_view(strings, (strid)x->args[0]->word);
    const char *at = strpool_cstr(strings, (strid)x->args[0]->word);
    uint32_t arg = 1;
    if (!format.len || strlen(at) != format.len)
        return false;
    while (*at) {
        size_t n = strcspn(at, "%");
        if (!add_text(p, &list, at, n))
            return false;
        at += n;
        if (!*at)
            break;
        at++;
        if (*at == '%' ? !add_text(p, &list, at++, 1) : !read_conversion(p, &list, x, &at, &arg))
            return false;
    }
    return keep(p, x, &list, (struct plan_format){0});
}

bool format_read_concat(struct query_plan *p, struct plan_expr *x)
{
    struct pieces list = {.n = 0};
    for (uint32_t i = 0; i < x->n_args; i++)
        if (!add(&list, (struct plan_piece){.kind = PIECE_PLAIN, .arg = (uint8_t)i}))
            return false;
    return keep(p, x, &list, (struct plan_format){.spreads = true});
}

bool format_read_json(struct query_plan *p, struct plan_expr *x, bool object)
{
    struct pieces list = {.n = 0};
    bool ok = x->n_args > 0 && (!object || x->n_args % 2 == 0) && add_text(p, &list, object ? "{" : "[", 1);
    for (uint32_t i = 0; ok && i < x->n_args; i++) {
        bool label = object && i % 2 == 0;
        ok = (!i || add_text(p, &list, object && !label ? ":" : ",", 1)) && (!label || x->args[i]->type == PLAN_TEXT) &&
             add(&list, (struct plan_piece){.kind = label ? PIECE_LABEL : PIECE_JSON, .arg = (uint8_t)i});
    }
    ok = ok && add_text(p, &list, object ? "}" : "]", 1);
    return ok && keep(p, x, &list, (struct plan_format){0});
}

bool format_read_length(struct query_plan *p, struct plan_expr *x)
{
    struct pieces list = {.n = 0};
    const struct plan_expr *of = x->args[0];
    if (of->op != X_CALL || !of->format || of->format->counts || of->arguments)
        return keep(p, x, &list, (struct plan_format){.counts = true, .spreads = true});
    const char *text = arena_printf(&p->arena, "SELECT length((%s))", of->text);
    if (!text)
        return false;
    list.n = of->format->n;
    memcpy(list.of, of->format->pieces, list.n * sizeof *list.of);
    x->text = text;
    x->args = of->args;
    x->n_args = of->n_args;
    return keep(p, x, &list, (struct plan_format){.counts = true, .spreads = of->format->spreads});
}

bool format_read_quote(struct query_plan *p, struct plan_expr *x)
{
    struct pieces list = {.n = 0};
    return add(&list, (struct plan_piece){.kind = PIECE_JSON}) && keep(p, x, &list, (struct plan_format){0});
}

bool format_read_values(struct query_plan *p, struct plan_expr *x, uint32_t first, uint32_t n, format_call *call,
                        struct slice text, bool spreads)
{
    struct pieces list = {.n = 0};
    for (uint32_t i = first; i < first + n; i++)
        if (!add(&list, (struct plan_piece){.kind = PIECE_CALL, .arg = (uint8_t)i, .call = call, .text = text}))
            return false;
    return keep(p, x, &list, (struct plan_format){.spreads = spreads});
}

const struct plan_expr *format_is_concat(const struct plan_expr *x)
{
    const struct plan_format *f = x->op == X_CALL ? x->format : NULL;
    return f && f->spreads && !f->counts && f->pieces[0].kind == PIECE_PLAIN ? x : NULL;
}

/* ---- making ---- */

static bool room(struct format_text *t, size_t n)
{
    if (t->n + n + 1 <= t->cap)
        return true;
    size_t cap = 2 * (t->n + n) + 64;
    char *p = mem_realloc(t->p, cap);
    if (p) {
        t->p = p;
        t->cap = cap;
    }
    return p != NULL;
}

static bool put(struct format_text *t, const void *p, size_t n)
{
    if (!room(t, n))
        return false;
    memcpy(t->p + t->n, p, n);
    t->n += n;
    return true;
}

static bool put_spaces(struct format_text *t, size_t n)
{
    if (!room(t, n))
        return false;
    memset(t->p + t->n, ' ', n);
    t->n += n;
    return true;
}

static bool put_integer(struct format_text *t, int64_t v)
{
    char digits[DECIMAL_SIZE];
    return put(t, digits, decimal_put_i64(v, digits));
}

static bool put_real(struct format_text *t, double v)
{
    char number[64];
    sqlite3_snprintf(sizeof number, number, "%!.15g", v);
    return put(t, number, strlen(number));
}

bool format_put(struct format_text *t, const struct strpool *strings, enum plan_type type, int64_t word)
{
    if (type == PLAN_INT)
        return put_integer(t, word);
    if (type == PLAN_REAL)
        return put_real(t, column_f64(word));
    struct slice s = strpool_view(strings, (strid)word);
    return put(t, s.p, s.len);
}

bool format_put_text(struct format_text *t, struct slice s)
{
    return put(t, s.p, s.len);
}

static bool put_string(struct format_text *t, const struct strpool *strings, const struct plan_piece *piece,
                       enum plan_type type, int64_t word, bool null)
{
    struct format_text own = {0},
                       *to = type == PLAN_TEXT || null || (piece->width <= 0 && piece->precision < 0) ? t : &own;
    struct slice s = slice_of("", 0);
    if (type == PLAN_TEXT && !null)
        s = strpool_view(strings, (strid)word);
    else if (!null && to == t)
        return format_put(t, strings, type, word);
    else if (!null && !format_put(to, strings, type, word))
        return false;
    if (to == &own)
        s = slice_of(own.p, own.n);
    const void *nul = s.len ? memchr(s.p, 0, s.len) : NULL;
    size_t len = nul ? (size_t)((const char *)nul - (const char *)s.p) : s.len;
    len = piece->precision >= 0 && (size_t)piece->precision < len ? (size_t)piece->precision : len;
    size_t pad = piece->width > 0 && (size_t)piece->width > len ? (size_t)piece->width - len : 0;
    bool ok = (piece->left || put_spaces(t, pad)) && put(t, s.p, len) && (!piece->left || put_spaces(t, pad));
    mem_free(own.p);
    return ok;
}

/* NULL is zero. */
static bool put_number(struct format_text *t, const struct plan_piece *piece, enum plan_type type, int64_t word,
                       bool null)
{
    char number[NUMBER_ROOM];
    double d = null ? 0 : type == PLAN_REAL ? column_f64(word) : (double)word;
    int64_t v = null ? 0 : type == PLAN_REAL ? plan_integer_of(d) : word;
    if (!piece->text.len)
        return put_integer(t, v);
    const char *spec = (const char *)piece->text.p;
    if (piece->kind == PIECE_REAL)
        sqlite3_snprintf(sizeof number, number, spec, d);
    else
        sqlite3_snprintf(sizeof number, number, spec, (long long)v);
    return put(t, number, strlen(number));
}

/* As json_quote() has it. */
static bool put_quoted(struct format_text *t, struct slice s)
{
    static const char short_ones[32] = {[8] = 'b', [9] = 't', [10] = 'n', [12] = 'f', [13] = 'r'},
                      hex[] = "0123456789abcdef";
    if (!room(t, s.len * 6 + 2))
        return false;
    const uint8_t *from = s.p;
    char *to = t->p + t->n;
    *to++ = '"';
    for (size_t i = 0; i < s.len; i++) {
        uint8_t c = from[i];
        if (c >= 32 && c != '"' && c != '\\') {
            *to++ = (char)c;
            continue;
        }
        *to++ = '\\';
        if (c >= 32) {
            *to++ = (char)c;
        } else if (short_ones[c]) {
            *to++ = short_ones[c];
        } else {
            memcpy(to, "u00", 3);
            to[3] = hex[c >> 4];
            to[4] = hex[c & 15];
            to += 5;
        }
    }
    *to++ = '"';
    t->n = (size_t)(to - t->p);
    return true;
}

static enum format_result put_json(struct format_text *t, const struct strpool *strings, const struct plan_piece *piece,
                                   enum plan_type type, int64_t word, bool null)
{
    bool ok;
    if (null && piece->kind == PIECE_LABEL)
        return FORMAT_ASK;
    if (null)
        ok = put(t, "null", 4);
    else if (type == PLAN_TEXT)
        ok = put_quoted(t, strpool_view(strings, (strid)word));
    else if (type == PLAN_REAL && !isfinite(column_f64(word)))
        return FORMAT_ASK;
    else
        ok = format_put(t, strings, type, word);
    return ok ? FORMAT_TEXT : FORMAT_NO_MEMORY;
}

static enum format_result put_piece(struct format_text *t, const struct strpool *strings,
                                    const struct plan_piece *piece, enum plan_type type, int64_t word)
{
    bool null = word == plan_null(type), ok;
    switch (piece->kind) {
    case PIECE_PLAIN:
        ok = format_put(t, strings, type, word);
        break;
    case PIECE_STRING:
        ok = put_string(t, strings, piece, type, word, null);
        break;
    case PIECE_INTEGER:
    case PIECE_REAL:
        ok = put_number(t, piece, type, word, null);
        break;
    case PIECE_CALL:
        return piece->call(t, strings, type, word, piece->text);
    default:
        return put_json(t, strings, piece, type, word, null);
    }
    return ok ? FORMAT_TEXT : FORMAT_NO_MEMORY;
}

enum format_result format_make(const struct plan_expr *x, const struct strpool *strings, const int64_t *const *args,
                               uint32_t i, struct format_text *out)
{
    const struct plan_format *f = x->format;
    size_t before = out->n;
    for (uint32_t k = 0; f->spreads && k < x->n_args; k++)
        if (args[k][i] == plan_null((enum plan_type)x->args[k]->type))
            return FORMAT_NULL;
    enum format_result done = FORMAT_TEXT;
    for (uint32_t k = 0; k < f->n && done == FORMAT_TEXT; k++) {
        const struct plan_piece *piece = &f->pieces[k];
        if (piece->kind == PIECE_CONST)
            done = put(out, piece->text.p, piece->text.len) ? FORMAT_TEXT : FORMAT_NO_MEMORY;
        else
            done = put_piece(out, strings, piece, (enum plan_type)x->args[piece->arg]->type, args[piece->arg][i]);
    }
    if (done == FORMAT_TEXT && out->n - before > MOST_TEXT)
        return FORMAT_ASK;
    return done == FORMAT_TEXT && !room(out, 0) ? FORMAT_NO_MEMORY : done;
}

/* Characters up to the first NUL, as SQLite counts them. */
static int64_t count_characters(struct slice s)
{
    const uint8_t *z = s.p;
    int64_t n = 0;
    for (size_t i = 0; i < s.len && z[i]; n++) {
        bool lead = z[i++] >= 0xc0;
        while (lead && i < s.len && (z[i] & 0xc0) == 0x80)
            i++;
    }
    return n;
}

enum format_result format_length(const struct plan_expr *x, const struct strpool *strings, const int64_t *const *args,
                                 uint32_t i, struct format_text *room_of, int64_t *out)
{
    *out = COL_NULL;
    if (!x->format->n && !args[0][i])
        return FORMAT_NULL;
    room_of->n = 0;
    enum format_result done = x->format->n ? format_make(x, strings, args, i, room_of) : FORMAT_TEXT;
    if (done == FORMAT_TEXT)
        *out = count_characters(x->format->n ? slice_of(room_of->p, room_of->n)
                                             : strpool_view(strings, (strid)args[0][i]));
    return done;
}

bool format_counts(const struct plan_expr *x)
{
    return x->format && x->format->counts;
}
