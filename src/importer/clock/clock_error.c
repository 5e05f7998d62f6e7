/* The bound of the error of a clock_line at a reading, by what is proven about the cell that it lies in. */
#include "importer/clock/clock_line_private.h"

#include "base/bisect.h"

#include <assert.h>

size_t clock_cell_at(const struct clock_line *l, int64_t x)
{
    size_t at = l->cells.n;
    BISECT(at, mid, l->cells.p[mid].x[0] <= x);
    return at ? at - 1 : 0;
}

const struct clock_span *clock_span_of(const struct clock_line *l, size_t burst)
{
    size_t at = l->spans.n - 1;
    BISECT(at, mid, l->spans.p[mid].end <= burst);
    return &l->spans.p[at];
}

/* The quickest round trip of what surrounds a cell: an error below half of it is never claimed. */
static int64_t floor_of(const struct clock_line *l, size_t cell)
{
    int64_t a = clock_span_of(l, cell / 2)->min_rtt_ns, b = clock_span_of(l, (cell + 1) / 2)->min_rtt_ns;
    return (a < b ? a : b) / 2 + 1;
}

static int64_t chord(const int64_t y[2], wide at, wide length)
{
    if (length <= 0)
        return y[0];
    wide rise = (wide)y[1] - y[0];
    return sync_saturate(y[0] + (rise / length) * at + (rise % length) * at / length);
}

int64_t clock_line_error(const struct clock_line *l, int64_t remote)
{
    size_t i = clock_cell_at(l, remote);
    const struct clock_cell *c = &l->cells.p[i];
    wide length = (wide)c->x[1] - c->x[0], at = (wide)remote - c->x[0], away = 0, slack = 0;
    if (at < 0 || at > length) { /* before the first comparison, or after the last */
        bool last = at > length;
        away = last ? at - length : -at;
        at = last ? length : 0;
        wide growth = ((away * l->end_slope[last]) >> 30) + 1;
        slack = growth + clock_bend(away) + away * (CLOCK_RATE_STEP_PPB / 1000) / 1000000 + 1;
        remote = c->x[last];
    } else {
        slack = clock_bulge(at, length);
    }
    wide map = clock_line_to_host(l, remote);
    wide above = chord(c->hi, at, length) - map, below = map - chord(c->lo, at, length);
    wide error = (above > below ? above : below) + slack + 2;
    wide least = floor_of(l, i);
    error = error > least ? error : least;
    assert(2 * error > clock_span_of(l, i / 2)->min_rtt_ns || 2 * error > clock_span_of(l, (i + 1) / 2)->min_rtt_ns);
    return sync_saturate(error);
}

int64_t clock_line_worst(const struct clock_line *l, int64_t first, int64_t end)
{
    int64_t worst = 0;
    for (size_t i = clock_cell_at(l, first); i < l->cells.n && (l->cells.p[i].x[0] <= end || i == 0); i++) {
        const struct clock_cell *c = &l->cells.p[i];
        int64_t a = c->x[0] > first ? c->x[0] : first, b = c->x[1] < end ? c->x[1] : end;
        b = b > a ? b : a;
        const int64_t at[] = {a, a + (b - a) / 2, b > a ? b - 1 : b};
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            int64_t e = clock_line_error(l, at[k]);
            worst = e > worst ? e : worst;
        }
    }
    return worst;
}
