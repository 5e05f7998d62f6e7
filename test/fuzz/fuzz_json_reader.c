/* Fuzzes the JSON reader: what it accepts it accepts in every way of reading, and never reads outside of the bytes. */
#include "base/json_reader.h"
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* of just that size */
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    struct json_reader checked = json_reader(slice_of(copy, size)), skipped = checked;
    bool ok = json_check(&checked);
    struct slice raw;
    if (ok && (!json_skip(&skipped, &raw) || skipped.p != checked.p))
        abort();
    if (checked.p > checked.end)
        abort();
    struct json_number n;
    struct json_text t = {slice_of(copy, size), true};
    int64_t v;
    if (json_number_of(t.raw, &n)) {
        json_number_f64(&n);
        json_number_i64(&n, true, &v);
        for (int scale = -20; scale <= 20; scale++)
            json_number_scaled(&n, scale, &v);
    }
    char *out = malloc(size ? size : 1);
    if (out && json_unescape(t, JSON_TOLERANT, out) > size)
        abort();
    free(out);
    free(copy);
    return 0;
}
