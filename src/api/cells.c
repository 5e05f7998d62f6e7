/* Many rows at once. */
#include "base/alloc.h"
#include "base/vec.h"
#include "meridian/tp.h"

#include <string.h>

void tp_cells_free(struct tp_cells *c)
{
    mem_free(c->types);
    mem_free(c->values);
    mem_free(c->lens);
    mem_free(c->bytes);
    *c = (struct tp_cells){0};
}

/* Room for `max` rows. What was there is not kept. */
static bool reserve(struct tp_cells *c, int columns, size_t max)
{
    size_t n = columns > 0 ? max * (size_t)columns : 1;
    if (max > SIZE_MAX / sizeof(int64_t) / (columns > 0 ? (size_t)columns : 1))
        return false;
    c->stride = max;
    if (n <= c->cells_cap)
        return true;
    tp_cells_free(c);
    c->stride = max;
    c->types = mem_alloc(n * sizeof *c->types);
    c->values = mem_alloc(n * sizeof *c->values);
    c->lens = mem_alloc(n * sizeof *c->lens);
    c->cells_cap = c->types && c->values && c->lens ? n : 0;
    return c->cells_cap > 0;
}

static bool put_bytes(struct tp_cells *c, size_t at, const void *bytes, size_t len)
{
    size_t need = c->n_bytes + len + 1;
    if (need > c->bytes_cap && !vec_reserve_((void **)&c->bytes, &c->bytes_cap, 1, need))
        return false;
    c->values[at] = (int64_t)c->n_bytes;
    c->lens[at] = (uint32_t)len;
    if (len)
        memcpy(c->bytes + c->n_bytes, bytes, len);
    c->n_bytes += len;
    c->bytes[c->n_bytes++] = '\0';
    return true;
}

static bool put_cell(struct tp_cells *c, size_t at, const struct tp_result *r, int column)
{
    enum tp_type type = tp_column_type(r, column);
    const void *bytes;
    size_t len;
    double d;
    c->types[at] = (uint8_t)type;
    c->values[at] = 0;
    c->lens[at] = 0;
    switch (type) {
    case TP_NULL:
        return true;
    case TP_INT64:
        c->values[at] = tp_int64(r, column);
        return true;
    case TP_DOUBLE:
        d = tp_double(r, column);
        memcpy(&c->values[at], &d, sizeof d);
        return true;
    case TP_TEXT:
        bytes = tp_text(r, column, &len);
        return put_bytes(c, at, bytes, len);
    case TP_BLOB:
        bytes = tp_blob(r, column, &len);
        return put_bytes(c, at, bytes, len);
    }
    return false;
}

int tp_step_many(struct tp_result *r, size_t max, struct tp_cells *c)
{
    int columns = tp_columns(r), rc = 1;
    c->rows = 0;
    c->n_bytes = 0;
    if (max == 0)
        return TP_INVALID;
    if (!reserve(c, columns, max))
        return TP_NOMEM;
    while (c->rows < max && (rc = tp_step(r)) == 1) {
        for (int column = 0; column < columns; column++)
            if (!put_cell(c, (size_t)column * c->stride + c->rows, r, column))
                return TP_NOMEM;
        c->rows++;
    }
    return rc < 0 ? rc : c->rows > 0;
}
