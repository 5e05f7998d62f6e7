/* Queries within expressions of a grammar. */
#include "plan_grammar.h"

/* What rows are compared with: a column, or near it. */
static void put_other(struct text *t)
{
    static const char *const near[] = {"%s", "%s", "(%s + 20)", "(%s - 3)", "(%s * 2)", "-%s", "abs(%s)"};
    put(t, near[pick(7)], one_of(plan_at->ints, 8));
}

static void put_range(struct text *t, const char *own)
{
    static const char *const operators[] = {"<", "<=", ">", ">=", "!="};
    switch (pick(6)) {
    case 0:
        put(t, "%s BETWEEN ", own);
        put_other(t);
        put(t, " AND ");
        put_other(t);
        break;
    case 1:
        put_other(t);
        put(t, " BETWEEN %s AND %s + %u", own, own, pick(60));
        break;
    case 2:
        put_other(t);
        put(t, " %s %s", operators[pick(5)], own);
        break;
    default:
        put(t, "%s %s ", own, operators[pick(5)]);
        put_other(t);
        break;
    }
}

/* FROM … WHERE, of few rows for each row outside. */
static void put_ranged(struct text *t)
{
    static const char *const keys[] = {"z.track_id", "z.parent_id", "z.depth", "z.id", "z.dur % 7"};
    static const char *const owns[] = {"z.ts", "z.ts + z.dur", "z.dur", "z.depth", "z.ts - z.depth"};
    static const char *const rest[] = {"",
                                       "",
                                       " AND z.depth > 20",
                                       " AND z.name IS NOT NULL",
                                       " AND z.name IN ('a', 'abc', 'zz')",
                                       " AND (z.depth < 9 OR z.dur > 40)"};
    const char *text = one_of(plan_at->texts, 4);
    if (pick(5) == 0) {
        put(t, " FROM v_counter z WHERE z.ts BETWEEN %s AND %s + %u", one_of(plan_at->ints, 8),
            one_of(plan_at->ints, 8), pick(40));
    } else if (pick(5) == 0) {
        put(t, " FROM v_thread y JOIN v_slice z ON z.depth = y.tid WHERE z.id < 600 AND ");
        if (pick(2))
            put(t, "%s = %s AND ", pick(2) ? "z.track_id" : "y.upid", one_of(plan_at->ints, 8));
        put_range(t, pick(2) ? "y.upid" : "z.ts");
    } else {
        put(t, " FROM v_slice z WHERE ");
        if (pick(8))
            put(t, "%s = %s AND ", keys[pick(5)], one_of(plan_at->ints, 8));
        else
            put(t, "z.id %% 13 = 5 AND ");
        put_range(t, owns[pick(5)]);
        if (pick(3) == 0) {
            put(t, " AND ");
            put_range(t, owns[pick(5)]);
        }
        if (text && pick(5) == 0)
            put(t, " AND z.name != %s", text);
        put(t, "%s", rest[pick(6)]);
    }
}

static const char *const ranged_ints[] = {"count(*)",
                                          "count(z.ts)",
                                          "sum(z.ts)",
                                          "min(z.ts)",
                                          "max(z.ts)",
                                          "coalesce(max(z.id), -1)",
                                          "coalesce(sum(z.ts), 0)",
                                          "CAST(avg(z.ts) AS INT)",
                                          "max(z.ts)",
                                          "z.ts",
                                          "z.id",
                                          "z.track_id",
                                          "z.id",
                                          "z.ts",
                                          "z.track_id"};
enum { AGGREGATES = 9 }; /* of those */

/* (SELECT … ORDER BY … LIMIT 1), of the value; aggregates stand in front of the list. */
static void put_ranged_value(struct text *t, const char *const *values, uint32_t n)
{
    static const char *const orders[] = {"",
                                         " LIMIT 1",
                                         " ORDER BY z.ts DESC LIMIT 1",
                                         " ORDER BY z.ts LIMIT 1",
                                         " ORDER BY z.ts DESC",
                                         " ORDER BY z.id DESC LIMIT 1",
                                         " ORDER BY z.track_id DESC, z.id LIMIT 1",
                                         " ORDER BY z.track_id LIMIT 1"};
    uint32_t at = pick(n);
    bool aggregate = n > AGGREGATES && at < AGGREGATES;
    if (aggregate && pick(4) == 0)
        put(t, "(SELECT %s %c %s", one_of(plan_at->ints, 8), "-+/<"[pick(4)], values[at]);
    else
        put(t, "(SELECT %s", values[at]);
    put_ranged(t);
    put(t, "%s)", aggregate ? "" : orders[pick(8)]);
}

/* FROM … WHERE, of which a condition or the value mixes columns of both queries in ways that no key or range has. */
static void put_mixed_rows(struct text *t)
{
    static const char *const keys[] = {"z.track_id", "z.parent_id", "z.depth", "z.id"};
    const char *a = one_of(plan_at->ints, 8), *b = one_of(plan_at->ints, 8), *text = one_of(plan_at->texts, 4);
    switch (pick(5)) {
    case 0:
        put(t, " FROM v_thread y LEFT JOIN v_slice z ON z.depth = y.tid AND z.id < 500 WHERE y.upid = %s", a);
        break;
    case 1:
        put(t, " FROM v_slice z JOIN v_thread y ON y.id = z.track_id WHERE z.depth = %s", a);
        break;
    default:
        put(t, " FROM v_slice z WHERE %s = %s", keys[pick(4)], a);
        break;
    }
    switch (pick(6)) {
    case 0:
        put(t, " AND (z.dur > %s OR z.ts < %s)", b, one_of(plan_at->ints, 8));
        break;
    case 1:
        put(t, " AND z.ts + %s > z.dur", b);
        break;
    case 2:
        if (text)
            put(t, " AND (z.name < %s OR z.dur IS NULL)", text);
        break;
    case 3:
        put(t, " AND coalesce(z.dur, %s) %% 3 != 1", b);
        break;
    default:
        break;
    }
}

static void put_mixed_value(struct text *t)
{
    static const char *const values[] = {"sum(max(z.ts, %s) - min(z.dur, %s))",
                                         "count(CASE WHEN z.dur < %s THEN %s END)",
                                         "coalesce(sum(z.dur + %s), 0) * 2 + coalesce(%s, 1)",
                                         "max(z.ts - %s) - min(z.ts + %s)",
                                         "sum(z.dur - %s) * 1.0 / count(z.dur - %s)",
                                         "avg(z.dur / 3.0 + %s) + %s",
                                         "min(%s, %s)",
                                         "count(DISTINCT z.dur + %s)",
                                         "sum(%s)"};
    const char *a = one_of(plan_at->ints, 8), *b = one_of(plan_at->ints, 8);
    bool first = pick(3) == 0;
    put(t, "(SELECT ");
    put(t, first ? "z.id + %s" : values[pick(9)], a, b);
    put_mixed_rows(t);
    if (first)
        put(t, "%s", pick(2) ? " ORDER BY z.dur DESC, z.id LIMIT 1" : " LIMIT 1");
    else if (pick(6) == 0)
        put(t, " GROUP BY z.depth%s ORDER BY count(*) DESC, z.depth LIMIT 1", pick(2) ? "" : " HAVING count(*) > 1");
    put(t, ")");
}

void put_query_text(struct text *t)
{
    static const char *const texts[] = {"'x' || z.id", "CASE WHEN z.ts > 40 THEN 'late' END", "'c'"};
    put_ranged_value(t, texts, 3);
}

/* A query within an expression that asks by a key of the row, or by none. */
void put_query_condition(struct text *t)
{
    static const char *const keys[] = {"z.id", "z.track_id", "z.depth", "z.dur", "z.parent_id"};
    static const char *const wheres[] = {"", " AND z.dur > 300", " AND z.name IS NOT NULL", " AND z.depth < 3"};
    const char *column = one_of(plan_at->ints, 8), *text = one_of(plan_at->texts, 4), *negated = pick(3) ? "" : "NOT ";
    if (pick(6) == 0) {
        put(t, "%sEXISTS (SELECT 1", negated);
        put_mixed_rows(t);
        put(t, ")");
        return;
    }
    switch (pick(text ? 8 : 7)) {
    case 5:
    case 6:
        put(t, "%sEXISTS (SELECT 1", negated);
        put_ranged(t);
        put(t, ")");
        break;
    case 0:
        put(t, "%s %sIN (SELECT %s FROM v_slice z WHERE 1%s)", column, negated, keys[pick(5)], wheres[pick(4)]);
        break;
    case 1:
        put(t, "%sEXISTS (SELECT 1 FROM v_slice z WHERE %s = %s%s)", negated, keys[pick(5)], column, wheres[pick(4)]);
        break;
    case 2:
        put(t, "%sEXISTS (SELECT * FROM v_counter z WHERE z.value > %u)", negated, pick(2000));
        break;
    case 3:
        put(t, "(SELECT count(*) FROM v_slice z WHERE %s = %s%s) > %u", column, keys[pick(5)], wheres[pick(4)],
            pick(3));
        break;
    case 4:
        put(t, "(%s, %s) %sIN (SELECT depth, max(track_id) FROM v_slice GROUP BY 1)", column, one_of(plan_at->ints, 8),
            negated);
        break;
    default:
        put(t, "%s %sIN (SELECT z.name FROM v_thread z LEFT JOIN v_slice y ON y.depth = z.tid)", text, negated);
        break;
    }
}

/* The first row of a key, or an aggregate over its rows. */
void put_query_int(struct text *t)
{
    if (pick(4) == 0) {
        put_mixed_value(t);
        return;
    }
    if (pick(2)) {
        put_ranged_value(t, ranged_ints, sizeof ranged_ints / sizeof *ranged_ints);
        return;
    }
    static const char *const values[] = {"max(z.dur)", "count(z.dur)", "count(*)",
                                         "min(z.ts)",  "sum(z.depth)", "coalesce(max(z.id), 0)",
                                         "z.dur",      "z.ts",         "sum(z.dur)"};
    static const char *const keys[] = {"z.id", "z.track_id", "z.parent_id"};
    static const char *const orders[] = {"z.id", "z.dur DESC, z.id", "z.ts, y.id DESC", "y.upid, z.dur"};
    if (pick(3) == 0) {
        put(t, "(SELECT %s FROM v_thread y JOIN v_slice z ON z.depth = y.tid WHERE %s = %s ORDER BY %s LIMIT 1)",
            pick(2) ? "z.ts" : "y.tid", pick(2) ? "y.id" : keys[pick(3)], one_of(plan_at->ints, 8), orders[pick(4)]);
        return;
    }
    put(t, "(SELECT %s FROM v_slice z WHERE %s = %s%s)", values[pick(9)], keys[pick(3)], one_of(plan_at->ints, 8),
        pick(2) ? "" : " AND z.depth > 1");
}
