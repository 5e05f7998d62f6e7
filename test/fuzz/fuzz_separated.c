/* Fuzzes rows that a ClickHouse server sends: the first byte says how long the pieces are that they come in. */
#include "fleet/separated.h"

#include <string.h>

struct pieces {
    struct slice left;
    size_t length;
};

static int more(void *ctx, struct slice *piece, struct error *err)
{
    struct pieces *p = ctx;
    (void)err;
    size_t n = p->left.len < p->length ? p->left.len : p->length;
    *piece = slice_of(p->left.p, n);
    p->left.p += n;
    p->left.len -= n;
    return n > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct pieces p = {slice_of(data + 1, size - 1), (size_t)data[0] + 1};
    struct separated s = {.more = more, .ctx = &p, .from = "server"};
    struct error err;
    size_t rows = 0, bytes = 0;
    int rc = separated_begin(&s, &err);
    while (rc == 0 && separated_next(&s, &err) == 1) {
        rows++;
        for (size_t i = 0; i < s.names.n; i++) {
            const char *cell = separated_cell(&s, (int)i);
            bytes += cell ? s.sizes.p[i] : 0;
            if (cell && cell[s.sizes.p[i]] != '\0')
                __builtin_trap();
        }
    }
    if (bytes > size || rows > size) /* what comes out is at most what went in */
        __builtin_trap();
    separated_free(&s);
    return 0;
}
