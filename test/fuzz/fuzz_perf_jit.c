/* Fuzzes names of made code: the lines of perf-PID.map when the first byte is even, else the records of a jitdump file.
 */
#include "capture/perf/perf_jit.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perf_jit j = {.pid = 1};
    if (!size)
        return 0;
    struct slice bytes = slice_of(data + 1, size - 1);
    size_t used = data[0] & 1 ? perf_jit_parse_dump(&j, bytes, data[0] & 2) : perf_jit_parse_map(&j, bytes);
    if (used > bytes.len)
        __builtin_trap();
    perf_jit_sort(&j);
    for (size_t i = 0; i < j.functions.n; i++) {
        const struct perf_jit_function *f = &j.functions.p[i];
        if (f->name >= j.names.n || (i && f[-1].start > f->start))
            __builtin_trap();
        struct slice name = perf_jit_name(&j, f->start + f->size - 1);
        if (name.len > PERF_JIT_NAME_BYTES)
            __builtin_trap();
    }
    perf_jit_free(&j);
    return 0;
}
