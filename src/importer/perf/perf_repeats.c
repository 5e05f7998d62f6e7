/* Keeps what was made of kernel events that come again and again. */
#include "importer/perf/perf_repeats.h"

uint32_t perf_repeat_words(const struct event_program *p)
{
    enum { WORD = 8 };
    if (p->kind != PROGRAM_FIELDS || p->n_dynamic || p->min_size < PERF_REPEAT_COMMON + WORD ||
        p->min_size > PERF_REPEAT_BYTES)
        return 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].offset < PERF_REPEAT_COMMON)
            return 0;
    return (p->min_size - PERF_REPEAT_COMMON + WORD - 1u) / WORD;
}

bool perf_repeat_keep(struct perf_repeat *r, const struct event_program *p, uint32_t n, const uint8_t *event,
                      uint64_t hash, struct slice made, uint32_t call_args)
{
    bool again = r->last == hash;
    r->last = hash;
    if (!again || made.len > PERF_REPEAT_MADE)
        return false;
    r->program = p;
    r->words[0] = perf_repeat_word(event, p->min_size - 8u);
    for (uint32_t i = 1; i < n; i++)
        r->words[i] = perf_repeat_word(event, 8 * i);
    r->args = ARGSET_NONE;
    r->len = (uint8_t)made.len;
    r->call_args = (uint8_t)call_args;
    memcpy(r->made, made.p, made.len);
    return true;
}
