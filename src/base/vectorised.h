/* Loops that the compiler makes vectors of, for each width that machines have; the widest that is there runs.
 *
 *     VECTORISED static void add(const int64_t *a, const int64_t *b, uint32_t n, int64_t *out) { … }
 *
 * Sanitizers start before such functions can be chosen; their builds have the plain form only. */
#ifndef MERIDIAN_BASE_VECTORISED_H
#define MERIDIAN_BASE_VECTORISED_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define VECTORISED
#endif

/* Before a loop: so many turns at once, of vectors, too. Worth it for short bodies that are run a thousand times. */
#if defined(__clang__)
#define UNROLLED_4 _Pragma("clang loop unroll_count(4)")
#define UNROLLED_8 _Pragma("clang loop unroll_count(8)")
#else
#define UNROLLED_4 _Pragma("GCC unroll 4")
#define UNROLLED_8 _Pragma("GCC unroll 8")
#endif

#endif
