/* Statements of a grammar whose queries lie within each other: in lists, conditions, joins, groups, orders and windows,
 * with rows outside that ask in every way there is. */
#include "plan_grammar.h"

#include <stdio.h>

/* What a query within reads; `$` stands for its name, `@` for a number of the rows outside. */
struct inner {
    const char *from;
    const char *ints[8], *reals[3], *texts[4];
    const char *few; /* a column that leaves few rows when it is equal to something; NULL: there are few */
};

/* SQLite computes those behind the first LIGHT ones anew for each row that asks. */
enum { LIGHT = 11 };
static const struct inner inners[] = {
    {"v_slice $", {"ts", "dur", "depth", "parent_id", "id", "track_id"}, {0}, {"name", "category"}, "track_id"},
    {"v_slice $", {"ts", "dur", "depth", "parent_id", "id"}, {0}, {"name", "category"}, "depth"},
    {"v_slice $", {"ts", "dur", "track_id", "id"}, {0}, {"name"}, "parent_id"},
    {"v_slice $", {"dur", "depth", "parent_id", "thread_ts"}, {0}, {"category", "name"}, "id"},
    {"v_counter $", {"ts", "id", "track_id", "arg_set_id"}, {"value"}, {0}, "track_id"},
    {"v_thread $", {"id", "tid", "upid", "start_ts", "is_main_thread"}, {0}, {"name"}, NULL},
    {"v_machine $", {"id", "raw_id"}, {0}, {"name", "sysname"}, NULL},
    {"ancestor_slice(abs(coalesce(@, 7) % 2500)) $", {"id", "ts", "dur", "depth"}, {0}, {"name"}, NULL},
    {"spans $", {"ts", "p", "d"}, {0}, {"name"}, "p"},
    {"meets $", {"ts", "dur", "id_0", "id_1", "k"}, {0}, {0}, "k"},
    {"descendant_slice(abs(coalesce(@, 7) % 90)) $", {"id", "ts", "dur", "depth"}, {0}, {"name"}, "depth"},
    {"(SELECT track_id AS k, depth AS d, count(*) AS n, max(dur) AS m, avg(dur) AS r, min(name) AS w FROM v_slice "
     "GROUP "
     "BY 1, 2) $",
     {"k", "d", "n", "m"},
     {"r"},
     {"w"},
     "k"},
    {"(SELECT track_id AS k, id AS i, ts AS a, name AS w, lag(dur) OVER (PARTITION BY track_id ORDER BY id) AS p FROM "
     "v_slice) $",
     {"k", "i", "a", "p"},
     {0},
     {"w"},
     "k"},
    {"(SELECT depth AS k, ts AS a, name AS w FROM v_slice WHERE dur > 50 UNION ALL SELECT upid, tid, name FROM "
     "v_thread) "
     "$",
     {"k", "a"},
     {0},
     {"w"},
     "k"},
    {"(SELECT DISTINCT depth AS k, name AS w FROM v_slice) $", {"k"}, {0}, {"w"}, "k"},
    {"(SELECT s.depth AS k, s.id AS i, s.dur AS a, t.name AS w, t.tid AS b FROM v_slice s LEFT JOIN v_thread t ON t.id "
     "= "
     "s.track_id) $",
     {"k", "i", "a", "b"},
     {0},
     {"w"},
     "k"},
    {"j $", {"ts", "dur", "p", "w", "d"}, {0}, {"name"}, "w"},
    {"below(4) $", {"ts", "dur", "d"}, {0}, {"name"}, NULL},
};

/* The rows outside: what names mean there, one query within the other. */
struct level {
    const struct inner *of;
    char name[8];
};

static struct level levels[4];
static int n_levels;
static int n_nested; /* queries in the statement so far */
static bool few_ask; /* rows outside */

enum { MOST_NESTED = 4, MOST_LEVELS = 2 };

/* A number of the rows outside. */
static void put_outer(struct text *t)
{
    if (n_levels > 1 && pick(2)) {
        const struct level *l = &levels[n_levels - 2];
        put(t, "%s.%s", l->name, one_of(l->of->ints, 8));
        return;
    }
    put(t, "%s", one_of(plan_at->ints, 8));
}

static void put_outer_near(struct text *t)
{
    switch (pick(8)) {
    case 0:
        put(t, "(");
        put_outer(t);
        put(t, " + %u)", pick(40));
        break;
    case 1:
        put(t, "-");
        put_outer(t);
        break;
    case 2:
        put(t, "(");
        put_outer(t);
        put(t, " %% %u)", 1 + pick(50));
        break;
    case 3:
        put(t, "coalesce(");
        put_outer(t);
        put(t, ", %u)", pick(9));
        break;
    default:
        put_outer(t);
        break;
    }
}

static const char *outer_text(void)
{
    const char *text = one_of(plan_at->texts, 4);
    return text ? text : "'abc'";
}

static struct level *now(void)
{
    return &levels[n_levels - 1];
}

static void put_own(struct text *t)
{
    put(t, "%s.%s", now()->name, one_of(now()->of->ints, 8));
}

static bool put_own_text(struct text *t)
{
    const char *text = one_of(now()->of->texts, 4);
    put(t, text ? "%s.%s" : "'%s%s'", text ? now()->name : "a", text ? text : "b");
    return text != NULL;
}

static void put_source(struct text *t)
{
    for (const char *c = now()->of->from; *c; c++)
        if (*c == '$')
            put(t, "%s", now()->name);
        else if (*c == '@')
            put_outer(t);
        else
            put(t, "%c", *c);
}

static void put_nested_condition(struct text *t);
static void put_nested_int(struct text *t);

static const char *const compare[] = {
    "=", "!=", "<", "<=", ">", ">=", "IS", "IS NOT", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"};

/* A condition that mixes columns of both queries. */
static void put_mixed(struct text *t)
{
    switch (pick(15)) {
    case 0:
        put(t, "(");
        put_own(t);
        put(t, " %s ", compare[pick(10)]);
        put_outer_near(t);
        put(t, " OR ");
        put_own(t);
        put(t, " IS %sNULL)", pick(2) ? "NOT " : "");
        break;
    case 1:
        put_own(t);
        put(t, " BETWEEN ");
        put_outer_near(t);
        put(t, " AND ");
        put_outer_near(t);
        put(t, " + %u", pick(900));
        break;
    case 2:
        put_outer_near(t);
        put(t, " %sIN (", pick(3) ? "" : "NOT ");
        put_own(t);
        put(t, ", ");
        put_own(t);
        put(t, ", %s)", pick(4) ? "7" : "NULL");
        break;
    case 3:
        put_own(t);
        put(t, " %sIN (", pick(3) ? "" : "NOT ");
        put_outer_near(t);
        put(t, ", %u)", pick(60));
        break;
    case 4:
        put_own_text(t);
        put(t, " %s %s", compare[pick(10)], outer_text());
        break;
    case 5:
        put_own_text(t);
        put(t, " || '%s' >= %s", pick_word(), outer_text());
        break;
    case 6:
        put_own_text(t);
        put(t, "%s = %s", pick(2) ? " COLLATE NOCASE" : "", outer_text());
        break;
    case 7:
        put(t, "%s LIKE ", outer_text());
        put_own_text(t);
        put(t, " || '%%'");
        break;
    case 8:
        put(t, "CASE WHEN ");
        put_outer_near(t);
        put(t, " > %u THEN ", pick(200));
        put_own(t);
        put(t, " > 3 ELSE ");
        put_own_text(t);
        put(t, " IS NOT NULL END");
        break;
    case 9:
        put(t, "abs(");
        put_own(t);
        put(t, " - ");
        put_outer_near(t);
        put(t, ") < %u", pick(500));
        break;
    case 10:
        put(t, "NOT (");
        put_own(t);
        put(t, " < ");
        put_outer_near(t);
        put(t, " AND ");
        put_own(t);
        put(t, " > %u)", pick(20));
        break;
    case 11:
        if (n_levels < MOST_LEVELS && n_nested < MOST_NESTED) {
            put_nested_condition(t);
            break;
        }
        /* fall through */
    default:
        put_own(t);
        put(t, " %s ", compare[pick(pick(3) ? 6 : 10)]);
        put_outer_near(t);
        break;
    }
}

static void put_rows_of(struct text *t)
{
    put(t, " FROM ");
    put_source(t);
    bool first = true;
    if (now()->of->few && n_levels == MOST_LEVELS) {
        put(t, " WHERE %s.id = ", now()->name);
        put_outer(t);
        first = false;
    } else if (now()->of->few && pick(20)) {
        put(t, " WHERE %s.%s = ", now()->name, now()->of->few);
        pick(5) ? put_outer(t) : put_outer_near(t);
        first = false;
    }
    for (uint32_t i = 0, n = pick(3); i < n; i++) {
        put(t, first ? " WHERE " : " AND ");
        put_mixed(t);
        first = false;
    }
    if (pick(6) == 0) {
        put(t, first ? " WHERE " : " AND ");
        put_own(t);
        put(t, " > %u", pick(30));
    }
}

static bool begin_level(void)
{
    if (n_levels == MOST_LEVELS || n_nested >= MOST_NESTED)
        return false;
    struct level *l = &levels[n_levels++];
    l->of = n_levels == MOST_LEVELS ? &inners[pick(2) ? 3 : 5] /* by their numbers */
                                    : &inners[pick(few_ask ? sizeof inners / sizeof *inners : LIGHT)];
    snprintf(l->name, sizeof l->name, "n%d", n_nested++);
    return true;
}

static void put_aggregate_of(struct text *t)
{
    static const char *const of[] = {"sum", "max", "min", "count", "total", "avg", "sum", "max"};
    const char *real = one_of(now()->of->reals, 3);
    switch (pick(14)) {
    case 0:
        put(t, "count(*)");
        break;
    case 1:
        put(t, "count(*) FILTER (WHERE ");
        put_mixed(t);
        put(t, ")");
        break;
    case 2:
        put(t, "count(DISTINCT ");
        put_own(t);
        put(t, pick(2) ? ")" : " %% 3)");
        break;
    case 3:
        put(t, "median(");
        put_own(t);
        put(t, " - ");
        put_outer(t);
        put(t, ")");
        break;
    case 4:
        put(t, "length(group_concat(");
        pick(2) ? (void)put_own_text(t) : put_own(t);
        put(t, pick(2) ? "))" : ", ';'))");
        break;
    case 5:
        put(t, "max(");
        put_own(t);
        put(t, ") - min(");
        put_own(t);
        put(t, " + ");
        put_outer(t);
        put(t, ")");
        break;
    case 6:
        put(t, "sum(max(");
        put_own(t);
        put(t, ", ");
        put_outer(t);
        put(t, ") - min(");
        put_own(t);
        put(t, ", ");
        put_outer_near(t);
        put(t, "))");
        break;
    case 7:
        if (real) {
            put(t, "%s(%s.%s)", of[pick(6)], now()->name, real);
            break;
        }
        /* fall through */
    case 8:
        put(t, "coalesce(%s(", of[pick(6)]);
        put_own(t);
        put(t, "), ");
        put_outer(t);
        put(t, ")");
        break;
    case 9:
        put(t, "%s(CASE WHEN ", of[pick(6)]);
        put_mixed(t);
        put(t, " THEN ");
        put_own(t);
        put(t, " END)");
        break;
    default:
        put(t, "%s(", of[pick(8)]);
        put_own(t);
        if (pick(2)) {
            put(t, " %c ", "+-*"[pick(3)]);
            put_outer(t);
        }
        put(t, ")");
        break;
    }
}

/* What comes first of the rows: ORDER BY, LIMIT, OFFSET. */
static void put_first(struct text *t)
{
    if (pick(6) == 0) {
        put(t, " LIMIT 1");
        return;
    }
    if (pick(12) == 0)
        return;
    put(t, " ORDER BY ");
    put_own(t);
    put(t, pick(2) ? " DESC" : "");
    if (pick(3)) {
        put(t, ", ");
        put_own(t);
    }
    if (pick(8))
        put(t, " LIMIT %u", pick(10) ? 1 : pick(4));
    else
        put(t, " LIMIT %u OFFSET %u", 1 + pick(2), pick(3));
}

/* A number, or NULL. */
static void put_nested_int(struct text *t)
{
    if (!begin_level()) {
        put_outer(t);
        return;
    }
    put(t, "(SELECT ");
    switch (pick(9)) {
    case 0:
    case 1:
    case 2:
        put_own(t);
        if (pick(3) == 0) {
            put(t, " + ");
            put_outer_near(t);
        }
        put_rows_of(t);
        put_first(t);
        break;
    case 3: /* the best group */
        put(t, pick(2) ? "%s.%s" : "max(%s.%s)", now()->name, now()->of->ints[0]);
        put_rows_of(t);
        put(t, " GROUP BY ");
        put_own(t);
        if (pick(3) == 0)
            put(t, " HAVING count(*) > %u", pick(3));
        put(t, " ORDER BY count(*) DESC, max(");
        put_own(t);
        put(t, ")%s LIMIT 1", pick(2) ? "" : " DESC");
        break;
    case 4:
        put(t, "DISTINCT ");
        put_own(t);
        put_rows_of(t);
        put(t, " ORDER BY 1%s LIMIT 1", pick(2) ? "" : " DESC");
        break;
    case 5:
        if (pick(3) == 0) {
            put(t, "row_number() OVER (ORDER BY ");
            put_own(t);
            put(t, ", %s.%s)", now()->name, now()->of->ints[0]);
            put_rows_of(t);
            put_first(t);
            break;
        }
        /* fall through */
    default:
        put_aggregate_of(t);
        put_rows_of(t);
        break;
    }
    put(t, ")");
    n_levels--;
}

static void put_nested_text(struct text *t)
{
    if (!begin_level()) {
        put(t, "%s", outer_text());
        return;
    }
    put(t, "(SELECT ");
    switch (pick(6)) {
    case 0:
        put(t, pick(2) ? "max(" : "min(");
        put_own_text(t);
        put(t, ")");
        put_rows_of(t);
        break;
    case 1:
        put(t, "group_concat(");
        put_own_text(t);
        put(t, pick(2) ? ")" : ", '-')");
        put_rows_of(t);
        break;
    case 2:
        put_own_text(t);
        put(t, " || ':' || %s", outer_text());
        put_rows_of(t);
        put_first(t);
        break;
    case 3:
        put(t, "json_group_array(");
        put_own(t);
        put(t, ")");
        put_rows_of(t);
        break;
    default:
        put_own_text(t);
        put_rows_of(t);
        put_first(t);
        break;
    }
    put(t, ")");
    n_levels--;
}

static void put_nested_condition(struct text *t)
{
    uint32_t kind = pick(8);
    if (kind < 2) {
        put_outer_near(t); /* of the level around */
        put(t, " %s ", compare[pick(10)]);
        put_nested_int(t);
        return;
    }
    struct text left = {.n = 0};
    put_outer_near(&left);
    if (!begin_level()) {
        put(t, "1");
        return;
    }
    const char *not = pick(3) ? "" : "NOT ";
    if (kind < 5) {
        put(t, "%sEXISTS (SELECT %s", not, pick(4) ? "1" : "*");
        put_rows_of(t);
        if (pick(8) == 0)
            put(t, " LIMIT 1");
    } else if (kind == 5) {
        put(t, "%s %sIN (SELECT ", outer_text(), not );
        put_own_text(t);
        put_rows_of(t);
    } else {
        put(t, "%s %sIN (SELECT ", left.p, not );
        put_own(t);
        put_rows_of(t);
        if (pick(5) == 0) {
            put(t, pick(2) ? " UNION SELECT " : " UNION ALL SELECT ");
            put_own(t);
            put_rows_of(t);
        }
    }
    put(t, ")");
    n_levels--;
}

/* ---- the rows that ask ---- */

enum { FEW = 5 };
static const struct plan_from asking[] = {
    {"v_thread t", {"t.id", "t.tid", "t.upid", "t.start_ts"}, {0}, {"t.name"}},
    {"(SELECT * FROM v_slice WHERE id % 37 = 3) s",
     {"s.ts", "s.dur", "s.depth", "s.parent_id", "s.id", "s.track_id"},
     {0},
     {"s.name", "s.category"}},
    {"(SELECT * FROM v_counter WHERE ts BETWEEN 90 AND 220) c",
     {"c.ts", "c.track_id", "c.id", "c.arg_set_id"},
     {"c.value"},
     {0}},
    {"(SELECT track_id AS k, count(*) AS d, max(id) AS i, min(name) AS w FROM v_slice GROUP BY 1) g",
     {"g.k", "g.d", "g.i"},
     {0},
     {"g.w"}},
    {"(SELECT * FROM v_slice WHERE depth = 7) s JOIN v_thread t ON t.id = s.track_id",
     {"s.ts", "t.tid", "s.id", "t.upid"},
     {0},
     {"t.name", "s.name"}},
    {"v_slice s", {"s.ts", "s.dur", "s.depth", "s.parent_id", "s.id", "s.track_id"}, {0}, {"s.name", "s.category"}},
    {"v_slice s", {"s.id", "s.depth", "s.track_id", "s.ts"}, {0}, {"s.name"}},
    {"v_counter c", {"c.ts", "c.track_id", "c.id", "c.arg_set_id"}, {"c.value"}, {0}},
    {"v_slice s JOIN v_thread t ON t.id = s.depth", {"s.ts", "t.tid", "s.id", "t.upid"}, {0}, {"t.name", "s.name"}},
    {"v_thread t LEFT JOIN v_slice s ON s.depth = t.tid AND s.id < 1500",
     {"s.id", "t.tid", "s.track_id"},
     {0},
     {"s.name"}},
    {"(SELECT track_id AS k, depth AS d, max(id) AS i, min(name) AS w FROM v_slice GROUP BY 1, 2) g",
     {"g.k", "g.d", "g.i"},
     {0},
     {"g.w"}},
    {"(SELECT id AS i, depth AS d, name AS w, lag(id) OVER (PARTITION BY track_id ORDER BY id) AS p FROM v_slice) q",
     {"q.i", "q.d", "q.p"},
     {0},
     {"q.w"}},
    {"(SELECT depth AS k, id AS i, name AS w FROM v_slice WHERE dur > 90 UNION ALL SELECT id, tid, name FROM v_thread) "
     "u",
     {"u.k", "u.i"},
     {0},
     {"u.w"}},
    {"(SELECT * FROM jo WHERE ts < 3000) jo", {"jo.ts", "jo.d", "jo.p", "jo.w"}, {0}, {"jo.name"}},
    {"spans x", {"x.p", "x.ts", "x.d"}, {0}, {"x.name"}},
};

static void put_value(struct text *t)
{
    switch (pick(7)) {
    case 0:
        put_nested_text(t);
        break;
    case 1:
        put(t, "coalesce(");
        put_nested_int(t);
        put(t, ", -1)");
        break;
    case 2:
        put(t, "CASE WHEN ");
        put_nested_condition(t);
        put(t, " THEN ");
        put_outer(t);
        put(t, " ELSE ");
        pick(2) ? put_nested_int(t) : (void)put(t, "0");
        put(t, " END");
        break;
    case 3:
        put_nested_int(t);
        put(t, " %c ", "+-*"[pick(3)]);
        put_outer(t);
        break;
    default:
        put_nested_int(t);
        break;
    }
}

static void put_where(struct text *t)
{
    put(t, " FROM %s", plan_at->from);
    for (uint32_t i = 0, n = pick(3); i < n; i++) {
        put(t, i ? " AND " : " WHERE ");
        pick(2) ? put_nested_condition(t) : put_condition(t, 0);
    }
}

uint32_t put_nested(struct text *t)
{
    uint32_t n = 1 + pick(3);
    few_ask = pick(2);
    plan_at = &asking[pick(few_ask ? FEW : sizeof asking / sizeof *asking)];
    n_levels = n_nested = 0;
    switch (pick(6)) {
    case 0: /* groups of what is looked up */
        put(t, "SELECT ");
        put_value(t);
        put(t, " AS v, count(*), max(%s), sum(", one_of(plan_at->ints, 8));
        put_value(t);
        put(t, ")");
        put_where(t);
        put(t, " GROUP BY 1%s", pick(3) ? "" : " HAVING count(*) > 1");
        return 4;
    case 1: /* looked up for groups */
        put(t, "SELECT %s AS a, count(*) AS n, min(", one_of(plan_at->ints, 8));
        put_value(t);
        put(t, ")");
        put_where(t);
        put(t, " GROUP BY 1");
        return 3;
    case 2:
        put(t, "SELECT %s(", pick(2) ? "lag" : "sum");
        put_value(t);
        put(t, ") OVER (PARTITION BY %s ORDER BY ", one_of(plan_at->ints, 8));
        pick(2) ? put_nested_int(t) : put_outer(t);
        put(t, ", %s), %s", one_of(plan_at->ints, 8), one_of(plan_at->ints, 8));
        put_where(t);
        return 2;
    case 3: /* a query of rows that have asked */
        put(t, "SELECT v, count(*), max(x) FROM (SELECT ");
        put_value(t);
        put(t, " AS v, %s AS x", one_of(plan_at->ints, 8));
        put_where(t);
        put(t, ") GROUP BY v");
        return 3;
    default:
        put(t, "SELECT %s", pick(5) ? "" : "DISTINCT ");
        for (uint32_t i = 0; i < n; i++) {
            put(t, i ? ", " : "");
            pick(3) ? put_value(t) : put_outer(t);
        }
        put_where(t);
        return n;
    }
}
