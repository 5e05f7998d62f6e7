/* Results as JSON: an array of objects, or an object a line. */
#include "shell/output_private.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
            output_double(o, v);
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
        out_char(o, '"');
        output_hex(o, r, c);
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

int64_t output_json(struct output *o, struct tp_result *r)
{
    bool array = o->format == OUTPUT_JSON;
    int n = tp_columns(r), rc;
    int64_t rows = 0;
    struct json_keys *keys = json_keys_make(r);
    if (!keys)
        return TP_NOMEM;
    if (array)
        out_char(o->out, '[');
    for (; (rc = output_next(o, r)) == 1; rows++) {
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
