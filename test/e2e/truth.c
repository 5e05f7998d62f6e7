/* A program without frame pointers whose profile is known: twelve functions, each with its share of processor time,
 * which it measures itself. They are called directly, at the end of a recursion, out of a shared library, out of
 * qsort() of libc, from an aligned stack, from a frame of varying size and from a signal's handler.
 *
 *   truth SECONDS        of processor time
 *
 * At the end it prints a line for each function: its name, and its share in percent. */
#include "truth.h"

#include <alloca.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sum;

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#define SPIN(name)                                                                                                     \
    __attribute__((noipa)) static void name(unsigned rounds)                                                        \
    {                                                                                                                  \
        for (unsigned i = 0; i < rounds; i++)                                                                          \
            sum += i;                                                                                                  \
    }
SPIN(plain)
SPIN(deep)
SPIN(called_back)
SPIN(sorted)
SPIN(aligned)
SPIN(varying)
SPIN(handled)
SPIN(small)
SPIN(tiny)
SPIN(least)

/* Spins itself, in a frame with room in it: what is inlined is its own time. */
static inline __attribute__((always_inline)) void inlined(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sum += i;
}
__attribute__((noipa)) static void outer(unsigned rounds)
{
    volatile char room[1000] = {(char)rounds};
    inlined(rounds);
    sum += (uint64_t)room[1];
}

__attribute__((noipa)) static void recurse(unsigned rounds, unsigned depth)
{
    volatile char room[64] = {(char)depth};
    if (depth)
        recurse(rounds, depth - 1);
    else
        deep(rounds);
    sum += (uint64_t)room[0];
}

static void run_deep(unsigned rounds)
{
    recurse(rounds, 40);
}

static void run_called_back(unsigned rounds)
{
    truth_through_library(rounds, called_back);
}

static unsigned sort_rounds;
static int compare(const void *a, const void *b)
{
    sorted(sort_rounds);
    return *(const int *)a - *(const int *)b;
}

static void run_sorted(unsigned rounds)
{
    int two[] = {2, 1};
    sort_rounds = rounds;
    qsort(two, 2, sizeof *two, compare);
}

__attribute__((noipa)) static void run_aligned(unsigned rounds)
{
    alignas(256) volatile char room[512] = {(char)rounds};
    aligned(rounds);
    sum += (uint64_t)room[3];
}

__attribute__((noipa)) static void run_varying(unsigned rounds)
{
    volatile char *room = alloca(rounds % 977 + 16);
    room[0] = 1;
    varying(rounds);
    sum += (uint64_t)room[0];
}

static volatile unsigned signal_rounds;
static void on_signal(int number)
{
    handled(signal_rounds);
    sum += (uint64_t)number;
}

static void run_handled(unsigned rounds)
{
    signal_rounds = rounds;
    raise(SIGUSR1);
    sum++;
}

static const struct {
    const char *name;
    void (*run)(unsigned rounds);
    unsigned weight;
} parts[] = {
    {"plain", plain, 20},
    {"deep", run_deep, 17},
    {"truth_in_library", truth_in_library, 14},
    {"outer", outer, 12},
    {"called_back", run_called_back, 10},
    {"sorted", run_sorted, 8},
    {"aligned", run_aligned, 6},
    {"varying", run_varying, 5},
    {"handled", run_handled, 4},
    {"small", small, 2},
    {"tiny", tiny, 1},
    {"least", least, 1},
};
enum { N = sizeof parts / sizeof *parts, ROUNDS = 15000 };

__attribute__((noipa)) static void take_turns(int64_t spent[N])
{
    for (int i = 0; i < N; i++) {
        int64_t before = cpu_ns();
        parts[i].run(parts[i].weight * ROUNDS);
        spent[i] += cpu_ns() - before;
    }
    sum++; /* not a tail call */
}

int main(int argc, char **argv)
{
    int64_t spent[N] = {0}, all = 0, end = (argc > 1 ? atoi(argv[1]) : 1) * INT64_C(1000000000);
    signal(SIGUSR1, on_signal);
    while (cpu_ns() < end)
        take_turns(spent);
    for (int i = 0; i < N; i++)
        all += spent[i];
    for (int i = 0; i < N; i++)
        printf("%s %.3f\n", parts[i].name, 100.0 * (double)spent[i] / (double)all);
    return 0;
}
