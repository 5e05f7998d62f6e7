/* Specs of any bytes, binary or text: they parse or say why not; the SQL of each query is one whole statement, whatever
 * the spec's names and expressions are. */
#include "base/sql_token.h"
#include "summary/query/spec.h"
#include "summary/query/structured_query.h"

#include "fuzz.h"

#include <stdlib.h>

static void check_statement(const char *sql, size_t len)
{
    size_t open = 0;
    while (len) {
        enum token_kind kind;
        size_t n = token_next(sql, len, &kind);
        if (kind == TOKEN_ILLEGAL || kind == TOKEN_SEMI || (kind == TOKEN_RP && !open) || kind == TOKEN_COMMENT)
            abort();
        open += kind == TOKEN_LP;
        open -= kind == TOKEN_RP;
        sql += n;
        len -= n;
    }
    if (open)
        abort();
}

static void check_query(const struct structured_queries *shared, const structured_query *q, struct structured_sql *out)
{
    struct error err = {0};
    int rc = structured_query_sql(shared, q, out, &err);
    if (rc == 0) {
        check_statement(out->sql, out->sql_len);
        if (!structured_sql_standalone(out))
            abort();
    } else if (rc != err.code || !err.text[0]) {
        abort();
    }
}

static void check_spec(struct slice bytes, enum spec_format format)
{
    trace_summary_spec *spec;
    struct error err = {0};
    struct structured_sql out = {0};
    int rc = spec_parse(bytes, format, &spec, &err);
    if ((rc != 0) != (spec == NULL) || (rc && !err.text[0]))
        abort();
    if (rc)
        return;
    struct structured_queries *shared = structured_queries_open();
    for (size_t i = 0; i < spec->n_query; i++)
        structured_queries_add(shared, spec->query[i], &err);
    for (size_t i = 0; i < spec->n_query; i++)
        check_query(shared, spec->query[i], &out);
    for (size_t i = 0; i < spec->n_metric_spec; i++)
        if (spec->metric_spec[i]->query)
            check_query(shared, spec->metric_spec[i]->query, &out);
    structured_sql_free(&out);
    structured_queries_close(shared);
    spec_free(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_spec(slice_of(data, size), SPEC_BINARY);
    check_spec(slice_of(data, size), SPEC_TEXT);
    return 0;
}
