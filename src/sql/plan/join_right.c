/* Right joins: which rows have a partner is remembered, and those without come last. */
#include "sql/plan/join_private.h"

bool join_right_open(struct join *j, uint32_t at)
{
    uint8_t source = j->r->plan->steps[at].source;
    uint64_t n = (uint64_t)j->r->tables[source]->n_rows + 1;
    if (!j->r->plan->sources[source].right)
        return true;
    if (!run_alloc(j->r, n))
        return false;
    if (!(j->steps[at].matched = mem_zalloc(n)))
        j->r->rc = SQLITE_NOMEM;
    return j->steps[at].matched != NULL;
}

void join_right_rest(struct join *j, uint32_t at)
{
    const struct plan_step *steps = j->r->plan->steps;
    struct step_state *st = &j->steps[at];
    uint32_t n_rows = j->r->tables[steps[at].source]->n_rows;
    for (uint32_t row = 0; row < n_rows && !j->r->rc && !j->enough; row++) {
        if (row % BATCH == 0 && run_stopped(j->r))
            break;
        if (st->matched[row])
            continue;
        for (uint32_t k = 0; k < at; k++)
            st->out[steps[k].source][st->n_out] = (uint32_t)NO_ROW;
        st->out[steps[at].source][st->n_out] = row;
        if (++st->n_out == BATCH)
            join_flush(j, at);
    }
    join_flush(j, at);
}
