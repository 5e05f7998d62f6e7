/* Reads sizes. */
#include "shell/size_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int size_parse(const char *what, const char *text, uint64_t *bytes, struct error *err)
{
    static const char units[] = "kMGT";
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    bool good = end != text && text[0] >= '0' && text[0] <= '9' && !errno;
    const char *unit = good && *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (unit)
        end++;
    if (!good || *end || !v || v > UINT64_MAX >> shift)
        return error_set(err, -MRD_EINVALID,
                         "%s: invalid size '%.40s': use a number of bytes, or one with k, M, G or T", what, text);
    *bytes = v << shift;
    return 0;
}
