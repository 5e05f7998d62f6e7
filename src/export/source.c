/* Makes blocks of the columns of a table. */
#include "base/vectorised.h"
#include "export/source_private.h"
#include "storage/ucpu.h"

static const char internal[] = "__intrinsic_";

/* "slice" of "__intrinsic_slice". */
static const char *public_name(size_t table)
{
    const char *name = table_defs[table].name;
    if (strncmp(name, internal, sizeof internal - 1) == 0)
        return name + sizeof internal - 1;
    return name[0] == '_' ? name + 1 : name;
}

/* The number of the i-th table of the list: all but args. */
static size_t listed(size_t i)
{
    return i < T_args ? i : i + 1;
}

const char *export_table_name(size_t i)
{
    return listed(i) < T_COUNT ? public_name(listed(i)) : NULL;
}

uint32_t export_table_rows(struct engine *e, size_t i)
{
    if (listed(i) == T_stats) /* computed when it is asked for: a row for each stat that there is */
        return 1;
    return engine_storage(e)->t[listed(i)].n_rows;
}

const struct table *export_table(const struct storage *st, size_t i)
{
    return listed(i) == T_stats ? NULL : &st->t[listed(i)];
}

bool export_is_numbered(const struct table *t)
{
    return strcmp(t->def->columns[0].name, "id") != 0;
}

bool source_has(const struct export_source *s, const char *name)
{
    for (size_t i = 0; i < s->columns.n; i++)
        if (sqlite3_stricmp(s->columns.p[i].name, name) == 0)
            return true;
    return false;
}

static bool make_room(const struct export_source *s, struct source_column *c, enum export_kind kind)
{
    const size_t n = s->block_rows;
    c->null = mem_zalloc(n);
    if (kind == EXPORT_INT64)
        c->ints = mem_alloc(n * sizeof *c->ints);
    else if (kind == EXPORT_DOUBLE)
        c->doubles = mem_alloc(n * sizeof *c->doubles);
    else
        c->codes = mem_zalloc(n * sizeof *c->codes);
    return c->null && (c->ints || c->doubles || c->codes);
}

bool source_add(struct export_source *s, const char *name, enum export_kind kind, bool nullable, bool distinct,
                struct source_column how)
{
    struct export_text text; /* a query may name its columns with any bytes */
    const char *copy =
        text_valid(&s->names, name, strlen(name), &text) ? arena_strndup(&s->names, text.bytes, text.size) : NULL;
    return copy && vec_push(&s->columns, (struct export_column){copy, kind, nullable, distinct}) &&
           vec_push(&s->vectors, (struct export_vector){0}) && vec_push(&s->made, how) &&
           make_room(s, vec_last(&s->made), kind);
}

static enum export_kind kind_of(uint8_t type)
{
    return type == COL_STR ? EXPORT_TEXT : type == COL_F64 ? EXPORT_DOUBLE : EXPORT_INT64;
}

static bool may_be_null(const struct table *t, uint32_t column)
{
    return (t->def->columns[column].flags & COL_NULLABLE) || !t->final || t->columns[column].has_null;
}

/* `names`: of the columns, when they are not those of the table; may be NULL. */
static int plan(struct export_source *s, const char *const *names, struct error *err)
{
    const struct table *t = s->table;
    s->block_rows = t->n_rows < EXPORT_BLOCK_ROWS ? t->n_rows + 1 : EXPORT_BLOCK_ROWS;
    s->words = mem_alloc(s->block_rows * sizeof *s->words);
    bool ok = s->words && source_add(s, "trace", EXPORT_TEXT, false, false, (struct source_column){.how = FROM_TRACE});
    if (ok && s->implicit_id)
        ok = source_add(s, "id", EXPORT_INT64, false, false, (struct source_column){.how = FROM_ROW});
    for (uint32_t i = 0; ok && i < t->def->n_columns; i++) {
        const struct column_def *c = &t->def->columns[i];
        if (c->flags & COL_HIDDEN)
            continue;
        ok = source_add(s, names ? names[i] : c->name, kind_of(c->type), may_be_null(t, i), false,
                        (struct source_column){.how = FROM_TABLE, .table = t, .column = i, .type = c->type});
    }
    int rc = ok ? readable_plan(s, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    s->schema = (struct export_schema){s->name, s->columns.p, s->columns.n};
    return rc;
}

static int begin(struct export_source **out, struct storage *st, const char *name, const char *trace, struct error *err)
{
    struct export_source *s = *out = mem_zalloc(sizeof *s);
    const char *id = NULL;
    if (s) {
        s->st = st;
        s->name = mem_strdup(name);
        id = arena_strndup(&s->names, trace, strlen(trace));
    }
    if (!s || !s->name || !id || !text_valid(&s->names, id, strlen(id), &s->trace))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

/* Closes what could not be opened. */
static int finish(struct export_source **out, int rc)
{
    if (rc < 0) {
        export_source_close(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- the result of SQL ---- */

static int read_row(struct table_builder *b, struct engine_result *r, const char *const *names, struct error *err)
{
    for (int i = 0; i < r->n_columns; i++) {
        sqlite3_value *v = sqlite3_column_value(r->stmt, i);
        if (sqlite3_value_type(v) == SQLITE_BLOB)
            return error_set(err, -MRD_ESQL, "column %s holds blobs; export hex(%s) instead", names[i], names[i]);
        int rc = table_builder_value(b, (uint32_t)i, v, err);
        if (rc < 0)
            return rc == -MRD_ESQL
                       ? error_set(err, rc, "column %s holds texts and numbers; use CAST to make it one of them",
                                   names[i])
                       : rc;
    }
    return table_builder_commit(b, err);
}

/* Names of the result's columns, each once: a second `ts` becomes `ts_2`. */
static int name_columns(struct export_source *s, struct engine_result *r, const char **names, const char **plain,
                        struct error *err)
{
    for (int i = 0; i < r->n_columns; i++) {
        const char *name = engine_result_column_name(r, i);
        names[i] = arena_strndup(&s->names, name ? name : "", name ? strlen(name) : 0);
        plain[i] = arena_printf(&s->names, "c%d", i);
        for (int k = 0, again = 2; names[i] && k < i; k++) {
            if (sqlite3_stricmp(names[k], names[i]) != 0)
                continue;
            names[i] = arena_printf(&s->names, "%s_%d", name, again++);
            k = -1;
        }
        if (!names[i] || !plain[i])
            return error_set(err, -MRD_ENOMEM, "out of memory");
        if (sqlite3_stricmp(names[i], "trace") == 0)
            return error_set(err, -MRD_ESQL,
                             "the column 'trace' tells traces apart; give this one another name with AS");
    }
    return 0;
}

/* What is known of a column before its values come: its type in a table of ours. */
static uint8_t declared_type(const struct table_def *def, const char *name)
{
    static const uint8_t types[] = {[COL_U32] = RUNTIME_LONG,
                                    [COL_I32] = RUNTIME_LONG,
                                    [COL_I64] = RUNTIME_LONG,
                                    [COL_F64] = RUNTIME_DOUBLE,
                                    [COL_STR] = RUNTIME_STRING};
    for (uint32_t i = 0; def && i < def->n_columns; i++)
        if (strcmp(def->columns[i].name, name) == 0)
            return types[def->columns[i].type];
    return RUNTIME_ANY;
}

static int read_rows(struct export_source *s, struct engine_result *r, const char **names, const char **plain,
                     struct error *err)
{
    struct table_builder b;
    uint8_t *types = arena_zalloc(&s->names, (size_t)r->n_columns);
    if (!types)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    for (int i = 0; i < r->n_columns; i++)
        types[i] = declared_type(s->declared, names[i]);
    int rc = table_builder_init(&b, s->st, (uint32_t)r->n_columns, plain, types, err);
    if (rc < 0)
        return rc;
    b.stop = engine_stop(s->e);
    while ((rc = engine_result_next(r, err)) == 1 && (rc = read_row(&b, r, names, err)) >= 0)
        ;
    if (rc < 0)
        table_builder_abort(&b);
    else
        rc = table_builder_finish(&b, &s->runtime, err);
    return rc;
}

/* The columns of the packed table take the names that they have in the result. */
static int take_names(struct export_source *s, const char **names, struct error *err)
{
    for (uint32_t i = 0; i < s->runtime->def.n_columns; i++) {
        char *name = mem_strdup(names[i]);
        if (!name)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        mem_free((void *)(uintptr_t)s->runtime->columns[i].name);
        s->runtime->columns[i].name = name;
    }
    return 0;
}

static int run_query(struct export_source *s, const char *sql, struct error *err)
{
    struct engine_result r = {0};
    int rc = engine_query(s->e, s->name, slice_of(sql, strlen(sql)), &r, NULL, err);
    if (rc < 0)
        return rc;
    const size_t n = (size_t)r.n_columns;
    const char **names = r.n_columns > 0 ? arena_zalloc(&s->names, 2 * n * sizeof *names) : NULL;
    if (r.n_columns < 1 || !r.stmt)
        rc = error_set(err, -MRD_ESQL, "the query gives no columns; end it with a SELECT");
    else if (!names)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    else
        rc = name_columns(s, &r, names, names + n, err);
    if (rc == 0)
        rc = read_rows(s, &r, names, names + n, err);
    engine_result_close(&r);
    if (rc == 0)
        rc = take_names(s, names, err);
    if (rc == 0) {
        table_finalize(&s->runtime->table);
        s->table = &s->runtime->table;
        rc = plan(s, names, err);
    }
    return rc;
}

int export_open_query(struct export_source **out, struct engine *e, const char *name, const char *sql,
                      const char *trace, struct error *err)
{
    int rc = begin(out, engine_storage(e), name, trace, err);
    if (rc == 0)
        (*out)->e = e;
    return finish(out, rc < 0 ? rc : run_query(*out, sql, err));
}

int export_open_table(struct export_source **out, struct engine *e, const char *name, const char *trace,
                      struct error *err)
{
    for (size_t i = 0; export_table_name(i); i++) {
        if (strcmp(export_table_name(i), name) != 0)
            continue;
        int rc = begin(out, engine_storage(e), name, trace, err);
        if (rc == 0)
            (*out)->e = e;
        if (rc == 0 && listed(i) == T_stats) {
            (*out)->declared = &table_defs[T_stats];
            rc = run_query(*out, "SELECT * FROM __intrinsic_stats", err);
        } else if (rc == 0) {
            (*out)->table = &(*out)->st->t[listed(i)];
            (*out)->implicit_id = export_is_numbered((*out)->table);
            rc = plan(*out, NULL, err);
        }
        return finish(out, rc);
    }
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", name);
    int rc = sql ? export_open_query(out, e, name, sql, trace, err) : error_set(err, -MRD_ENOMEM, "out of memory");
    sqlite3_free(sql);
    return rc;
}

int export_open_rows(struct export_source **out, struct storage *st, const struct export_rows *rows, const char *trace,
                     struct error *err)
{
    int rc = begin(out, st, rows->name, trace, err);
    if (rc == 0) {
        (*out)->table = rows->table;
        (*out)->implicit_id = rows->numbered;
        (*out)->ids = rows->ids;
        rc = plan(*out, NULL, err);
    }
    return finish(out, rc);
}

const struct export_schema *export_source_schema(const struct export_source *s)
{
    return &s->schema;
}

/* ---- blocks ---- */

void source_unpack(const struct table *t, uint32_t column, uint32_t first, uint32_t n, int64_t *out)
{
    for (uint32_t done = 0; done < n;) {
        uint32_t at = first + done, left = COL_CHUNK_ROWS - (at & COL_CHUNK_MASK);
        uint32_t part = n - done < left ? n - done : left;
        column_unpack(&t->columns[column], at, part, out + done);
        done += part;
    }
}

/* Words as integers; NULL is 0 with its byte set. True when there is one. */
VECTORISED static bool make_ints(const int64_t *words, uint32_t n, int64_t *ints, uint8_t *nulls)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bool null = words[i] == COL_NULL;
        ints[i] = null ? 0 : words[i];
        any |= null;
    }
    for (uint32_t i = 0; any && i < n; i++)
        nulls[i] = words[i] == COL_NULL;
    return any;
}

static bool make_doubles(struct source_column *c, const int64_t *words, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        bool null = words[i] == COL_NULL_F64;
        c->doubles[i] = null ? 0 : column_f64(words[i]);
        c->null[i] = null;
        any |= null;
    }
    return any;
}

/* The words of a column for the rows of the block, in s->words. */
static void read_words(struct export_source *s, const struct source_column *c, uint32_t first, uint32_t n)
{
    switch (c->how) {
    case FROM_ROW:
        for (uint32_t i = 0; i < n; i++)
            s->words[i] = s->ids ? s->ids[first + i] : first + i;
        break;
    case FROM_TABLE:
    case FROM_ARGS:
        source_unpack(s->table, c->column, first, n, s->words);
        break;
    case FROM_KEY:
        readable_words(s, c, n, s->words);
        break;
    case FROM_CPU:
        for (uint32_t i = 0; i < n; i++)
            s->words[i] = s->keys[c->key][i] < 0 ? COL_NULL : s->keys[c->key][i] % CPUS_PER_MACHINE;
        break;
    case FROM_TRACE:
        break;
    }
}

static int make_column(struct export_source *s, size_t at, uint32_t first, uint32_t n)
{
    struct source_column *c = &s->made.p[at];
    struct export_vector *v = &s->vectors.p[at];
    bool any_null = false;
    int rc = 0;
    if (c->how == FROM_TABLE && c->ints && !s->columns.p[at].nullable) { /* words are the values */
        source_unpack(s->table, c->column, first, n, c->ints);
        *v = (struct export_vector){.ints = c->ints};
        return 0;
    }
    read_words(s, c, first, n);
    if (c->how == FROM_TRACE) { /* codes are all 0 */
        *v = (struct export_vector){.codes = c->codes, .dictionary = &s->trace, .dictionary_size = 1};
        return 0;
    }
    if (c->ints)
        any_null = make_ints(s->words, n, c->ints, c->null);
    else if (c->doubles)
        any_null = make_doubles(c, s->words, n);
    else if (c->how == FROM_ARGS)
        rc = text_column_args(s, c, n, &any_null);
    else
        rc = text_column_strings(s, c, n, &any_null);
    *v = (struct export_vector){.null = any_null ? c->null : NULL,
                                .ints = c->ints,
                                .doubles = c->doubles,
                                .codes = c->codes,
                                .dictionary = c->text.texts.p,
                                .dictionary_size = (uint32_t)c->text.texts.n};
    return rc;
}

int export_next(struct export_source *s, struct export_block *out, struct error *err)
{
    const uint32_t left = s->table->n_rows - s->next_row;
    const uint32_t n = left < EXPORT_BLOCK_ROWS ? left : EXPORT_BLOCK_ROWS;
    if (n == 0)
        return 0;
    if (s->e && engine_was_interrupted(s->e))
        return error_set(err, -MRD_ECANCELLED, "interrupted");
    arena_free(&s->texts);
    readable_find(s, s->next_row, n);
    for (size_t i = 0; i < s->made.n; i++)
        if (make_column(s, i, s->next_row, n) < 0)
            return error_set(err, -MRD_ENOMEM, "out of memory");
    s->next_row += n;
    *out = (struct export_block){n, s->vectors.p};
    return 1;
}

void export_source_close(struct export_source *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->made.n; i++) {
        struct source_column *c = &s->made.p[i];
        mem_free(c->ints);
        mem_free(c->doubles);
        mem_free(c->codes);
        mem_free(c->null);
        vec_free(&c->text.texts);
        vec_free(&c->text.marked);
    }
    for (size_t i = 0; i < KEY_COUNT; i++)
        mem_free(s->keys[i]);
    runtime_table_unref(s->runtime);
    vec_free(&s->columns);
    vec_free(&s->made);
    vec_free(&s->vectors);
    vec_free(&s->text);
    args_json_free(&s->json);
    mem_free(s->strings.codes);
    mem_free(s->sets.codes);
    mem_free(s->words);
    readable_free(s);
    mem_free(s->name);
    arena_free(&s->names);
    arena_free(&s->texts);
    mem_free(s);
}
