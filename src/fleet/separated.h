/* Reads rows in ClickHouse's format TabSeparatedWithNamesAndTypes: a line of names, a line of types, a line a row;
 * cells are escaped, \N is NULL. A statement without a result has no lines at all. */
#ifndef MERIDIAN_FLEET_SEPARATED_H
#define MERIDIAN_FLEET_SEPARATED_H

#include "base/error.h"
#include "base/slice.h"
#include "base/vec.h"

enum cell_kind { CELL_TEXT, CELL_INTEGER, CELL_DOUBLE };

/* A zeroed struct with `more` and `from` is ready. */
struct separated {
    int (*more)(void *ctx, struct slice *piece, struct error *err); /* the next bytes: 1; 0: the end; negative */
    void *ctx;
    const char *from; /* who answers, for errors */

    bool over;
    struct slice in;
    VEC(char) line;     /* unescaped; each cell ends with NUL */
    VEC(size_t) starts; /* of each cell */
    VEC(size_t) sizes;
    VEC(bool) nulls;
    VEC(char *) names;
    VEC(uint8_t) kinds; /* enum cell_kind */
};

/* Reads the names and types. */
int separated_begin(struct separated *s, struct error *err);

/* The next row: 1; 0: there is none. -MRD_EFORMAT: it is not what the names and types say, or ends in the middle. */
int separated_next(struct separated *s, struct error *err);

/* A cell of the row; NULL for NULL. */
const char *separated_cell(const struct separated *s, int column);
void separated_free(struct separated *s);

#endif
