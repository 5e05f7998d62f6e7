/* Statements of a grammar: rows, groups, windows, compounds, and what stands around them. */
#include "plan_grammar.h"

static void put_aggregate(struct text *t)
{
    static const char *const of_numbers[] = {"sum", "avg", "total", "min", "max", "count", "median"};
    switch (pick(10)) {
    case 0:
        put(t, "count(*)");
        break;
    case 9:
        put(t, "group_concat(DISTINCT ");
        put_any(t, 0);
        put(t, ")");
        break;
    case 1:
        put(t, "%s(DISTINCT ", of_numbers[pick(6)]);
        pick(2) ? put_any(t, 1) : put_int(t, 1);
        put(t, ")");
        break;
    case 2:
        put(t, "%s(", pick(2) ? "min" : "max");
        put_text(t, 1);
        put(t, ")");
        break;
    case 3:
        put(t, "group_concat(");
        put_any(t, 0);
        put(t, pick(2) ? ")" : ", '; ')");
        break;
    case 4:
        put(t, "percentile(");
        put_int(t, 1);
        put(t, ", %u)", pick(101));
        break;
    case 5:
        put(t, "%s(", of_numbers[pick(7)]);
        put_real(t, 2);
        put(t, ")%s", pick(4) ? "" : " / 2.5");
        break;
    default:
        put(t, "%s(", of_numbers[pick(7)]);
        put_int(t, 2);
        put(t, ")");
        if (pick(6) == 0) {
            put(t, " FILTER (WHERE ");
            put_condition(t, 1);
            put(t, ")");
        }
        break;
    }
}

/* ORDER BY places of the list, LIMIT. */
void put_tail(struct text *t, uint32_t n_items)
{
    uint32_t n = pick(4);
    for (uint32_t i = 0; i < n; i++)
        put(t, "%s%u%s%s%s", i ? ", " : " ORDER BY ", 1 + pick(n_items), pick_collation(), pick(3) ? "" : " DESC",
            pick(8)   ? ""
            : pick(2) ? " NULLS FIRST"
                      : " NULLS LAST");
    if (pick(3) == 0)
        put(t, " LIMIT %u", pick(40));
    else if (pick(8) == 0)
        put(t, " LIMIT 20 OFFSET %u", pick(30));
}

/* JSON over groups, or of them. */
static void put_json(struct text *t)
{
    static const char *const filters[] = {"", " FILTER (WHERE 1)", " FILTER (WHERE 0)"};
    const char *column = one_of(plan_at->texts, 4), *real = one_of(plan_at->reals, 4);
    switch (pick(4)) {
    case 0:
        put(t, "json_group_array(%s", pick(3) ? "" : "DISTINCT ");
        put_any(t, 1);
        put(t, ")%s", filters[pick(3)]);
        break;
    case 1:
        put(t, "json_group_array(json_object('a', %s, 'b', %s, 'c', %s))", column ? column : "1.5",
            one_of(plan_at->ints, 8), real ? real : "NULL");
        break;
    case 2:
        put(t, "json_array(max(%s), count(*), group_concat(%s), %s, '%s', min(%s))", one_of(plan_at->ints, 8),
            one_of(plan_at->ints, 8), column ? column : "1", pick_word(), column ? column : "2");
        break;
    default:
        put(t, "json_object('n', count(*), '%s', ", pick_word());
        put_any(t, 1);
        put(t, ", 'sum', sum(%s))", one_of(plan_at->ints, 8));
        break;
    }
}

static uint32_t put_groups(struct text *t)
{
    uint32_t keys = pick(4), n = 0;
    put(t, "SELECT %s", pick(8) ? "" : "DISTINCT ");
    for (; n < keys; n++) {
        put(t, n ? ", " : "");
        pick(3)
            ? (void)put(t, "%s", pick(2) && plan_at->texts[0] ? one_of(plan_at->texts, 4) : one_of(plan_at->ints, 8))
            : put_any(t, 1);
        put(t, "%s AS k%u", pick(3) ? "" : pick_collation(), n);
    }
    for (uint32_t i = 0; i < 1 + pick(4); i++, n++) {
        put(t, n ? ", " : "");
        put_aggregate(t);
    }
    if (pick(5) == 0) {
        put(t, ", max(%s), min(%s), %s", one_of(plan_at->ints, 8), one_of(plan_at->ints, 8), one_of(plan_at->ints, 8));
        n += 3;
    }
    if (pick(5) == 0) { /* bare columns come from the row of the extreme */
        const char *text = one_of(plan_at->texts, 4);
        put(t, ", %s(%s), %s, %s", pick(2) ? "max" : "min", one_of(plan_at->ints, 8), one_of(plan_at->ints, 8),
            text ? text : "1");
        n += 3;
    }
    if (pick(5) == 0) {
        put(t, ", ");
        put_any(t, 1);
        n++;
    }
    if (pick(8) == 0) {
        put(t, ", ");
        put_json(t);
        n++;
    }
    put_from(t);
    for (uint32_t i = 0; i < keys; i++) {
        bool named = pick(2);
        put(t, "%s%s%u%s", i ? ", " : " GROUP BY ", named ? "k" : "", named ? i : i + 1, pick_collation());
    }
    if (keys && pick(4) == 0)
        put(t, " HAVING count(*) > %u", pick(5));
    return n;
}

/* JSON of each row of a scan: it goes to the caller as it is made. */
static uint32_t put_json_rows(struct text *t)
{
    put(t, "SELECT %s, %s(", one_of(plan_at->ints, 8), pick(2) ? "json_object" : "json_array");
    for (uint32_t i = 0, n = 1 + pick(3); i < n; i++) {
        put(t, i ? ", '%s', " : "'%s', ", pick_word());
        put_any(t, 1);
    }
    put(t, ") AS j");
    put_from(t);
    return 2;
}

static uint32_t put_rows(struct text *t)
{
    uint32_t n = 1 + pick(4);
    bool distinct = pick(3) == 0, columns = distinct && pick(2);
    put(t, "SELECT %s", distinct ? "DISTINCT " : "");
    for (uint32_t i = 0; i < n; i++) {
        put(t, i ? ", " : "");
        columns
            ? (void)put(t, "%s", pick(2) && plan_at->texts[0] ? one_of(plan_at->texts, 4) : one_of(plan_at->ints, 8))
            : put_any(t, 2);
        if (pick(2))
            put(t, " AS r%u", i);
    }
    put_from(t);
    return n;
}

static void put_over(struct text *t, const char *over, bool ordered, bool one_term)
{
    static const char *const frames[] = {"",
                                         "",
                                         " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                                         " ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
                                         " ROWS BETWEEN 2 PRECEDING AND 4 FOLLOWING",
                                         " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                                         " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
                                         " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
                                         " ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
                                         " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                                         " ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING",
                                         " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
                                         " GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
                                         " GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
                                         " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                                         " RANGE BETWEEN 5 PRECEDING AND CURRENT ROW",
                                         " RANGE BETWEEN 100 PRECEDING AND 20 FOLLOWING",
                                         " RANGE BETWEEN 3 FOLLOWING AND UNBOUNDED FOLLOWING",
                                         " RANGE BETWEEN UNBOUNDED PRECEDING AND 10 PRECEDING"};
    static const char *const alone[] = {"row_number()", "rank()",   "dense_rank()", "percent_rank()",
                                        "cume_dist()",  "ntile(3)", "count(*)"};
    static const char *const of[] = {"lag", "lead", "first_value", "last_value"};
    static const char *const sums[] = {"sum", "avg", "total", "count", "min", "max"};
    switch (pick(3)) {
    case 0:
        put(t, "%s", alone[pick(7)]);
        break;
    case 1: {
        uint32_t which = pick(4);
        put(t, "%s(", of[which]);
        put_any(t, 1);
        put(t, which < 2 && pick(3) == 0 ? ", 1, 0)" : ")");
        break;
    }
    default:
        if (pick(12) == 0) { /* texts that grow from row to row are slow on both sides */
            put(t, "group_concat(");
            put_any(t, 0);
            put(t, pick(2) ? ")" : ", '; ')");
        } else {
            put(t, "%s(", sums[pick(6)]);
            pick(4) ? put_int(t, 1) : put_real(t, 1);
            put(t, ")");
        }
        if (pick(5) == 0) {
            put(t, " FILTER (WHERE ");
            put_condition(t, 0);
            put(t, ")");
        }
        break;
    }
    static const char *const excluded[] = {
        "", "", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP", " EXCLUDE NO OTHERS"};
    const char *frame = frames[pick(one_term ? 19 : ordered ? 15 : 11)];
    bool wide = strncmp(frame, " ROWS", 5) != 0 || strstr(frame, "UNBOUNDED"); /* SQLite goes through each frame anew */
    put(t, " OVER (%s%s%s)", over, frame, wide ? "" : excluded[pick(8)]);
}

/* What stands in OVER (). True when it orders rows. */
static bool put_window_order(struct text *over, bool *one_term)
{
    over->n = 0;
    over->p[0] = 0;
    *one_term = false;
    if (pick(3))
        put(over, "PARTITION BY %s",
            pick(2) && plan_at->texts[0] ? one_of(plan_at->texts, 4) : one_of(plan_at->ints, 8));
    if (pick(5) == 0)
        return false;
    put(over, " ORDER BY ");
    put_any(over, 0);
    put(over, "%s", pick(3) ? "" : " DESC");
    *one_term = pick(2) == 0;
    if (!*one_term)
        put(over, "%s, %s", pick(6) ? "" : pick(2) ? " NULLS FIRST" : " NULLS LAST", one_of(plan_at->ints, 8));
    return true;
}

static uint32_t put_windows(struct text *t)
{
    struct text over;
    uint32_t n = 1 + pick(3);
    bool one_term, ordered = put_window_order(&over, &one_term), several = pick(3) == 0;
    put(t, "SELECT %s", pick(5) ? "" : "DISTINCT ");
    for (uint32_t i = 0; i < n; i++) {
        put(t, i ? ", " : "");
        if (several && i)
            ordered = put_window_order(&over, &one_term);
        put_over(t, over.p, ordered, one_term);
        if (pick(3) == 0) {
            put(t, " - ");
            put_int(t, 1);
        }
    }
    put(t, ", ");
    put_any(t, 1);
    put_from(t);
    return n + 1;
}

/* Statements that no plan knows as a whole: strftime() of a text is SQLite's. Queries within them may have plans. */
static const char *const around[] = {
    "SELECT *, strftime('%Y', '1970-01-01') AS y FROM (",
    ")",
    "SELECT count(*), group_concat(DISTINCT strftime('%Y', '1970-01-01')) FROM (",
    ")",
    "SELECT (SELECT count(*) FROM (",
    ")) AS n, strftime('%Y', '1970-01-01') AS y",
    "WITH w AS (",
    ") SELECT *, strftime('%Y', '1970-01-01') AS y FROM w",
    "WITH w AS (",
    ") SELECT *, strftime('%Y', '1970-01-01') AS y FROM w, (SELECT id AS other FROM v_thread LIMIT 3)",
    "WITH w AS (",
    ") SELECT strftime('%Y', '1970-01-01') AS y, a.*, b.* FROM (SELECT count(*) FROM (SELECT * FROM w)) AS a, "
    "(SELECT * FROM w LIMIT 2) AS b",
    "SELECT id, strftime('%Y', '1970-01-01') AS y FROM v_thread WHERE id IN (SELECT count(*) FROM (",
    "))",
    "SELECT *, strftime('%Y', '1970-01-01') AS y FROM (",
    ") WHERE strftime('%Y', '1970-01-01') = '1970'",
    "SELECT *, strftime('%Y', '1970-01-01') AS y FROM (",
    ") ORDER BY 1 DESC LIMIT 30",
    "SELECT * FROM (",
    ") EXCEPT SELECT * FROM v_thread WHERE strftime('%Y', '1970-01-01') = '1971'",
    "SELECT *, strftime('%Y', '1970-01-01') AS y FROM (SELECT * FROM (",
    ")) GROUP BY 1"};

static void put_around(struct text *t)
{
    struct text within = *t;
    uint32_t which = pick(sizeof around / sizeof *around / 2);
    t->n = 0;
    put(t, "%s%s%s", around[2 * which], within.p, around[2 * which + 1]);
}

void make_statement(struct text *t)
{
    t->n = 0;
    t->p[0] = 0;
    plan_at = &plan_froms[pick(plan_n_froms)];
    uint32_t n;
    switch (pick(10)) {
    case 8:
    case 9:
        n = put_nested(t);
        break;
    case 0:
    case 1:
        n = pick(6) ? put_rows(t) : put_json_rows(t);
        break;
    case 2:
    case 3:
        n = put_windows(t);
        break;
    case 4:
        put(t, "SELECT count(*), a, max(b) FROM (SELECT ");
        put_int(t, 1);
        put(t, " AS a, ");
        put_any(t, 1);
        put(t, " AS b");
        put_from(t);
        put(t, ") GROUP BY a");
        n = 3;
        break;
    case 6:
        put(t, "SELECT * FROM (SELECT %s AS a, ", one_of(plan_at->ints, 8));
        put_any(t, 0);
        put(t, " AS b, row_number() OVER (PARTITION BY %s ORDER BY %s) AS c", one_of(plan_at->ints, 8),
            one_of(plan_at->ints, 8));
        put_from(t);
        put(t, ") WHERE c %s %u", pick(2) ? "<=" : "=", 1 + pick(3));
        n = 3;
        break;
    case 5:
        n = 1 + pick(2);
        for (uint32_t i = 0, arms = 2 + pick(3), kind = pick(6), mixed = pick(2); i < arms; i++) {
            static const char *const kinds[] = {"UNION ALL", "UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"};
            if (i)
                put(t, " %s ", kinds[mixed ? pick(6) : kind]);
            put(t, "SELECT ");
            for (uint32_t k = 0; k < n; k++) {
                put(t, k ? ", " : "");
                k ? put_text(t, 1) : put_int(t, 1);
            }
            put_from(t);
            plan_at = &plan_froms[pick(plan_n_froms)];
        }
        break;
    default:
        n = put_groups(t);
        break;
    }
    put_tail(t, n);
    if (pick(6) == 0)
        put_around(t);
}
