/* A binary search whose question is written where it is asked:
 *
 *     size_t n = list.n;
 *     BISECT(n, i, list.p[i].start <= address);
 *
 * Of `n` elements those for which `yes` holds stand before those for which it does not. Afterwards `n` is how many they
 * are: the place of the first for which it does not hold. `yes` is asked log2(n) times, and never beyond the last. */
#ifndef MERIDIAN_BASE_BISECT_H
#define MERIDIAN_BASE_BISECT_H

#define BISECT(n, i, yes)                                                                                              \
    do {                                                                                                               \
        __typeof__(n) bisect_first = 0;                                                                                \
        BISECT_RANGE(bisect_first, n, i, yes);                                                                         \
    } while (0)

/* The same among [first, end): afterwards both are the place. */
#define BISECT_RANGE(first, end, i, yes)                                                                               \
    while ((first) < (end)) {                                                                                          \
        const __typeof__(first) i = (first) + ((end) - (first)) / 2;                                                   \
        if (yes)                                                                                                       \
            (first) = i + 1;                                                                                           \
        else                                                                                                           \
            (end) = i;                                                                                                 \
    }

#endif
