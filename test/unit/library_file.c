/* Reads traces that are written down as rows. */
#include "library_file.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define FAULT(f, ...)                                                                                                  \
    do {                                                                                                               \
        fprintf(stderr, "%s:%u: ", (f)->path, (f)->line);                                                              \
        ck_abort_msg(__VA_ARGS__);                                                                                     \
    } while (0)

static char *skip(char *p)
{
    return p + strspn(p, " \t");
}

/* Takes a word, or a text in quotes, off *p; ends it with a NUL. `stops` ends a word as blanks do. */
static char *take(struct library_file *f, char **p, const char *stops, bool *quoted)
{
    char *start = *p = skip(*p);
    *quoted = *start == '\'';
    if (!*quoted) {
        start[strcspn(start, "\n")] = 0;
        *p = start + strcspn(start, stops);
    } else {
        char *to = ++start;
        char *from = start;
        while (*from && (*from != '\'' || from[1] == '\'')) {
            from += *from == '\'';
            *to++ = *from++;
        }
        if (!*from)
            FAULT(f, "a quote is missing");
        *p = from + 1;
        *to = 0;
    }
    return start;
}

static bool number(const char *s, int64_t *out)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {{"", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
    char *end;
    int64_t v = strtoll(s, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units && end != s; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *out = v * units[i].ns;
            return true;
        }
    return false;
}

static uint32_t label(struct library_file *f, const char *name)
{
    for (size_t i = 0; i < f->n_labels; i++)
        if (strcmp(f->labels[i].name, name) == 0)
            return f->labels[i].row;
    FAULT(f, "no row is called %s", name);
    return 0;
}

/* {a=1, b='x', c=@row, d=1.5}; *p stands behind the brace and is left behind the other. The set's cell. */
static int64_t arg_set(struct library_file *f, char **p)
{
    struct args *a = &f->st.args;
    struct arg_list l = {0};
    for (*p = skip(*p); **p != '}'; *p = skip(*p)) {
        char *key = *p;
        char *eq = strchr(key, '=');
        bool quoted;
        int64_t v;
        if (!eq)
            FAULT(f, "an arg has no value: %s", key);
        *eq = 0;
        *p = eq + 1;
        char *value = take(f, p, ",}", &quoted);
        char stop = **p;
        if (!quoted)
            **p = 0;
        if (quoted)
            arg_list_str(a, &l, key, strpool_intern_str(&f->st.strings, value));
        else if (*value == '@')
            arg_list_int(a, &l, key, label(f, value + 1));
        else if (number(value, &v))
            arg_list_int(a, &l, key, v);
        else if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
            arg_list_bool(a, &l, key, *value == 't');
        else if (isdigit((unsigned char)*value) || *value == '-')
            arg_list_real(a, &l, key, strtod(value, NULL));
        else
            arg_list_str(a, &l, key, strpool_intern_str(&f->st.strings, value));
        if (quoted) {
            *p = skip(*p);
            stop = **p;
        }
        if (stop == '}')
            **p = '}';
        else if (stop == ',')
            ++*p;
        else
            FAULT(f, "args end with a brace");
    }
    ++*p;
    argset set = args_intern(a, l.p, l.n);
    arg_list_free(&l);
    return argset_cell(set);
}

static int64_t word(struct library_file *f, const struct column_def *c, const char *value, bool quoted)
{
    int64_t v;
    if (!quoted && *value == '@')
        return label(f, value + 1);
    switch (c->type) {
    case COL_STR:
        return strpool_intern_str(&f->st.strings, value);
    case COL_F64:
        return column_f64_word(strtod(value, NULL));
    default:
        if (!number(value, &v))
            FAULT(f, "%s is no number: %s", c->name, value);
        return v;
    }
}

/* A slice without depth: below those of its track that are still open. Slices come by time. */
static void nest(struct library_file *f, int64_t *w)
{
    const struct table *t = &f->st.t[T_slice];
    for (uint32_t i = t->n_rows; i-- > 0;) {
        int64_t ts = table_get(t, slice_c_ts, i), dur = table_get(t, slice_c_dur, i);
        if (table_get(t, slice_c_track_id, i) != w[slice_c_track_id] || (dur >= 0 && ts + dur <= w[slice_c_ts]))
            continue;
        w[slice_c_depth] = table_get(t, slice_c_depth, i) + 1;
        w[slice_c_parent_id] = i;
        return;
    }
}

static void row(struct library_file *f, char *p)
{
    char *name = p;
    char *at = NULL, sql[80];
    int64_t w[64];
    p += strcspn(p, " :");
    if (*p == ':') {
        *p++ = 0;
        at = name;
        name = p = skip(p);
        p += strcspn(p, " ");
    }
    if (*p)
        *p++ = 0;
    snprintf(sql, sizeof sql, "__intrinsic_%s", name);
    int id = storage_find_table(sql);
    if (id < 0)
        id = storage_find_table(name);
    if (id < 0)
        FAULT(f, "no table is called %s", name);
    const struct table_def *def = &table_defs[id];
    for (uint32_t i = 0; i < def->n_columns; i++)
        w[i] = def->columns[i].flags & COL_NULLABLE ? column_null(def->columns[i].type)
               : def->columns[i].type == COL_STR    ? (int64_t)strpool_intern_str(&f->st.strings, "")
                                                    : 0;
    if (id == T_track)
        w[track_c_event_type] = strpool_intern_str(&f->st.strings, "slice");
    for (p = skip(p); *p; p = skip(p)) {
        char *column = p;
        uint32_t i = 0;
        bool quoted = false;
        p = strchr(p, '=');
        if (!p)
            FAULT(f, "a column has no value: %s", column);
        *p++ = 0;
        while (i < def->n_columns && strcmp(def->columns[i].name, column) != 0)
            i++;
        if (i == def->n_columns)
            FAULT(f, "%s has no column %s", name, column);
        if (*p == '{') {
            p++;
            w[i] = arg_set(f, &p);
            continue;
        }
        char *value = take(f, &p, " ", &quoted);
        if (*p && !quoted)
            *p++ = 0;
        w[i] = word(f, &def->columns[i], value, quoted);
    }
    if (id == T_slice && !w[slice_c_depth])
        nest(f, w);
    uint32_t n = table_append(&f->st.t[id], w);
    if (at) {
        ck_assert_uint_lt(f->n_labels, sizeof f->labels / sizeof *f->labels);
        snprintf(f->labels[f->n_labels].name, sizeof f->labels->name, "%s", at);
        f->labels[f->n_labels++].row = n;
    }
}

static void append(char **text, const char *format, const char *more)
{
    size_t n = *text ? strlen(*text) : 0, room = strlen(more) + strlen(format) + 1;
    *text = realloc(*text, n + room);
    ck_assert_ptr_nonnull(*text);
    snprintf(*text + n, room, format, more);
}

/* The line that says which modules, and all below it up to the next. */
static void ask(struct library_file *f, char *modules)
{
    struct library_question q = {.line = f->line};
    append(&q.sql, "%s", f->preamble ? f->preamble : "");
    append(&q.rows, "%s", "");
    for (char *save, *m = strtok_r(modules, " ", &save); m; m = strtok_r(NULL, " ", &save))
        append(&q.sql, "INCLUDE PERFETTO MODULE %s;", m);
    append(&q.sql, "%s", "\n");
    ck_assert(vec_push(&f->questions, q));
}

static void read_line(struct library_file *f, char *p)
{
    struct library_question *q = f->questions.n ? &f->questions.p[f->questions.n - 1] : NULL;
    if (*p == '#' || !*p)
        return;
    if (*p == '?')
        ask(f, p + 1);
    else if (*p == '!')
        append(&f->preamble, "%s\n", skip(p + 1));
    else if (q && *p == '=')
        append(&q->rows, *q->rows ? ";%s" : "%s", skip(p + 1));
    else if (q)
        append(&q->sql, "%s\n", p);
    else if (strncmp(p, "bounds ", 7) == 0) {
        char *end = strchr(p + 7, ' ');
        if (end)
            *end++ = 0;
        if (!end || !number(p + 7, &f->st.trace_start_ns) || !number(end, &f->st.trace_end_ns))
            FAULT(f, "bounds are two times");
    } else
        row(f, p);
}

void library_file_open(struct library_file *f, const char *path)
{
    *f = (struct library_file){.path = path};
    ck_assert_int_eq(storage_init(&f->st), 0);
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s", path);
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    f->text = calloc(1, (size_t)size + 1);
    ck_assert_ptr_nonnull(f->text);
    ck_assert_uint_eq(fread(f->text, 1, (size_t)size, in), (size_t)size);
    fclose(in);
    for (char *line = f->text, *next; line; line = next) {
        f->line++;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        read_line(f, line);
    }
    storage_finalize(&f->st);
}

void library_file_close(struct library_file *f)
{
    for (size_t i = 0; i < f->questions.n; i++) {
        free(f->questions.p[i].sql);
        free(f->questions.p[i].rows);
    }
    vec_free(&f->questions);
    free(f->preamble);
    free(f->text);
    storage_free(&f->st);
}
