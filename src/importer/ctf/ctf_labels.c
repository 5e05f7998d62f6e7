/* The labels of numbers: which of the ranges of a class hold a value. */
#include "importer/ctf/ctf_decode.h"

#include "base/bisect.h"
#include "importer/ctf/tsdl_internal.h"

#include <stdlib.h>

/* Numbers of a class as unsigned ones in the same order. */
static uint64_t ordered(int64_t value, bool is_signed)
{
    return (uint64_t)value ^ (is_signed ? 1ull << 63 : 0);
}

static int compare(const struct ctf_range *a, const struct ctf_range *b, bool is_signed)
{
    uint64_t x = ordered(a->lo, is_signed), y = ordered(b->lo, is_signed);
    return x != y ? (x > y) - (x < y) : (a->place > b->place) - (a->place < b->place);
}

static int by_signed(const void *a, const void *b)
{
    return compare(a, b, true);
}

static int by_unsigned(const void *a, const void *b)
{
    return compare(a, b, false);
}

/* Of many ranges each value would go through all: they are found by where they begin. */
static bool are_many(const struct ctf_type *t)
{
    return t->integer.n_ranges > CTF_MAX_CHOICES && !t->integer.is_flags;
}

void ctf_keep_ranges(struct tsdl_parser *p, struct ctf_type *t, const struct ctf_range *ranges, size_t n)
{
    t->integer.ranges = n && !p->rc ? tsdl_alloc(p, n * sizeof *ranges) : NULL;
    t->integer.n_ranges = t->integer.ranges ? (uint32_t)n : 0;
    for (uint32_t i = 0; i < t->integer.n_ranges; i++) {
        t->integer.ranges[i] = ranges[i];
        t->integer.ranges[i].place = i;
    }
    if (are_many(t))
        qsort(t->integer.ranges, n, sizeof *ranges, t->integer.is_signed ? by_signed : by_unsigned);
}

struct ctf_ranges ctf_ranges_near(const struct ctf_type *t, int64_t value)
{
    const bool is_signed = t->integer.is_signed;
    uint32_t end = t->integer.n_ranges;
    if (!are_many(t))
        return (struct ctf_ranges){t->integer.ranges, end < CTF_MAX_CHOICES ? end : CTF_MAX_CHOICES};
    BISECT(end, i, ordered(t->integer.ranges[i].lo, is_signed) <= ordered(value, is_signed));
    uint32_t n = end < CTF_MAX_CHOICES ? end : CTF_MAX_CHOICES;
    return (struct ctf_ranges){t->integer.ranges + end - n, n};
}

const char *ctf_enum_label(const struct ctf_type *type, int64_t value)
{
    const struct ctf_ranges near = ctf_ranges_near(type, value);
    const struct ctf_range *first = NULL;
    for (uint32_t i = 0; i < near.n; i++)
        if (ctf_in_range(type, value, near.p[i].lo, near.p[i].hi) && (!first || near.p[i].place < first->place))
            first = &near.p[i];
    return first ? first->label : NULL;
}
