/* A program whose profile is known: three functions that take turns on the processor, in shares that it measures
 * itself, below a function of their own.
 *
 *   busy SECONDS
 *
 * At the end it prints a line for each function: its name, where it begins in the file, and its share in percent. */
#include <stdint.h>
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
    __attribute__((noinline)) static void name(unsigned rounds)                                                        \
    {                                                                                                                  \
        for (unsigned i = 0; i < rounds; i++)                                                                          \
            sum += i;                                                                                                  \
    }
SPIN(hot)
SPIN(warm)
SPIN(cold)

static const struct {
    const char *name;
    void (*run)(unsigned rounds);
    unsigned rounds;
} parts[] = {{"hot", hot, 600000}, {"warm", warm, 300000}, {"cold", cold, 100000}};
enum { N = sizeof parts / sizeof *parts };

__attribute__((noinline)) static void take_turns(int64_t spent[N])
{
    for (int i = 0; i < N; i++) {
        int64_t before = cpu_ns();
        parts[i].run(parts[i].rounds);
        spent[i] += cpu_ns() - before;
    }
    sum++; /* not a tail call */
}

int main(int argc, char **argv)
{
    extern char __executable_start;
    int64_t spent[N] = {0}, all = 0;
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1) + 1; /* a whole second more, not less */
    while (time(NULL) < end)
        take_turns(spent);
    for (int i = 0; i < N; i++)
        all += spent[i];
    for (int i = 0; i < N; i++)
        printf("%s %lu %.3f\n", parts[i].name, (unsigned long)((char *)(uintptr_t)parts[i].run - &__executable_start),
               100.0 * (double)spent[i] / (double)all);
    printf("take_turns %lu 100\n", (unsigned long)((char *)(uintptr_t)take_turns - &__executable_start));
    return 0;
}
