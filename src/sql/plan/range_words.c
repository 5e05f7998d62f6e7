/* Words by place, of rows that lie side by side: their order, and where a comparison cuts them. */
#include "sql/plan/range_words.h"

#include "base/bisect.h"
#include "base/stop.h"

bool range_ascends(const int64_t *words, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (words[i - 1] > words[i])
            return false;
    return true;
}

static int by_word(const void *a, const void *b)
{
    const struct range_pair *x = a, *y = b;
    if (x->word != y->word)
        return x->word < y->word ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void turn(struct range_pair *p, uint32_t from, uint32_t to)
{
    while (from + 1 < to) {
        struct range_pair swap = p[from];
        p[from++] = p[--to];
        p[to] = swap;
    }
}

/* Pairs that descend: turned round, and equal ones once more. */
static void turn_all(struct range_pair *p, uint32_t n)
{
    turn(p, 0, n);
    for (uint32_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && p[to].word == p[from].word; to++)
            ;
        turn(p, from, to);
    }
}

bool range_sort(struct run *r, int64_t *words, uint32_t *rows, uint32_t n, struct range_pair *room)
{
    bool down = true;
    for (uint32_t i = 0; i < n; i++) {
        room[i] = (struct range_pair){words[i], rows[i]};
        down &= !i || words[i - 1] >= words[i];
    }
    if (down) {
        turn_all(room, n);
    } else if (!stop_sort(room, n, sizeof *room, by_word, engine_stop(r->e))) {
        r->rc = engine_gave_up(r->e);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        words[i] = room[i].word;
        rows[i] = room[i].row;
    }
    return true;
}

void range_make_ascend(int64_t *words, uint32_t from, uint32_t to, uint8_t op)
{
    bool lower = range_is_lower(op);
    for (uint32_t i = from + 1; lower && i < to; i++)
        words[i] = words[i] < words[i - 1] ? words[i - 1] : words[i];
    for (uint32_t i = from; !lower && i < to; i++)
        words[i] = words[i] == COL_NULL ? INT64_MAX : words[i];
    for (uint32_t i = to; !lower && i-- > from + 1;)
        words[i - 1] = words[i] < words[i - 1] ? words[i] : words[i - 1];
}

static inline bool is_before(int64_t own, int64_t word, bool beyond)
{
    return beyond ? own <= word : own < word;
}

void range_cut(const int64_t *words, uint32_t *lo, uint32_t *hi, int64_t word, uint8_t op, uint32_t *near)
{
    bool beyond = range_is_beyond(op);
    uint32_t from = *lo, to = *hi, at = *near < from ? from : *near < to ? *near : to;
    for (uint32_t step = 1; at < to && is_before(words[at], word, beyond); step *= 2) { /* it lies behind */
        from = at + 1;
        at = to - at > step ? at + step : to;
    }
    to = at;
    for (uint32_t step = 1; at > from && !is_before(words[at - 1], word, beyond); step *= 2) { /* or before */
        to = at - 1;
        at = at - from > step ? at - step : from;
    }
    from = at > from ? at : from;
    BISECT_RANGE(from, to, i, is_before(words[i], word, beyond));
    *near = from;
    *(range_is_lower(op) ? lo : hi) = from;
}
