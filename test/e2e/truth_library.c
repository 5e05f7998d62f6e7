/* The part of `truth` that is in a shared library. */
#include "truth.h"

static volatile uint64_t sum;

void truth_in_library(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sum += i;
}

__attribute__((noipa)) static void below(unsigned rounds)
{
    volatile char room[300] = {(char)rounds};
    truth_in_library(rounds + (unsigned)room[7]);
    sum++;
}

void truth_through_library(unsigned rounds, void (*run)(unsigned rounds))
{
    below(0);
    run(rounds);
    sum++; /* not a tail call */
}
