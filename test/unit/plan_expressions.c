/* Expressions of a grammar over the columns of a FROM. */
#include "plan_grammar.h"

#include <stdio.h>
#include <string.h>

const struct plan_from *plan_at;

const char *one_of(const char *const *list, uint32_t n)
{
    uint32_t have = 0;
    while (have < n && list[have])
        have++;
    return have ? list[pick(have)] : NULL;
}

const char *pick_collation(void)
{
    static const char *const collations[] = {" COLLATE NOCASE", " COLLATE BINARY", " collate \"NoCase\"",
                                             " COLLATE NOCASE COLLATE BINARY"};
    return pick(8) ? "" : pick(3) ? " COLLATE NOCASE" : collations[pick(4)];
}

/* printf() of conversions that a plan knows, and of some that it leaves to SQLite. */
static void put_format(struct text *t)
{
    static const char *const numbers[] = {"d",   "lld", "5d",  "-5d", "05d", "+d", ",d",   "x", "08X", "u", "o",
                                          ".3d", "f",   ".2f", "e",   "g",   "!g", "8.1f", "s", "i",   "c"};
    static const char *const texts[] = {"s", "4s", "-6s", ".2s", "7.3s", "-4.1s", "q", "Q", "z"};
    const char *column = one_of(plan_at->texts, 4), *real = one_of(plan_at->reals, 4);
    put(t, "%s('%%%s|%s%%%s%s', %s, ", pick(2) ? "printf" : "format", numbers[pick(21)], pick(2) ? "%%%%" : "-",
        column ? texts[pick(9)] : numbers[pick(21)], pick(8) ? "" : " %%d",
        pick(3) ? one_of(plan_at->ints, 8) : "NULL");
    if (column)
        put(t, "%s)", column);
    else
        put(t, "%s)", real ? real : one_of(plan_at->ints, 8));
}

static void put_chain(struct text *t)
{
    const char *real = one_of(plan_at->reals, 4);
    put(t, "%s || '%s' || ", one_of(plan_at->ints, 8), pick_word());
    put_text(t, 0);
    if (pick(2))
        put(t, " || (':' || %s)", real ? real : one_of(plan_at->ints, 8));
}

/* Functions that SQLite is asked for. */
static void put_text_call(struct text *t, const char *column)
{
    static const char *const of_numbers[] = {
        "hex(%s)",
        "quote(%s)",
        "char(64 + %s %% 60, %s)",
        "char(%s)",
        "strftime('%%Y-%%j %%w %%d.%%m. %%H:%%M:%%S %%f %%s%%%%', %s, 'unixepoch')",
        "strftime('%%f', %s / 7.0, 'unixepoch')",
        "time(%s * 1000, 'unixepoch')",
        "datetime(%s * 77777, 'unixepoch')"};
    if (pick(3) == 0) {
        const char *number = one_of(plan_at->ints, 8);
        put(t, of_numbers[pick(8)], number, number);
        return;
    }
    if (pick(4) == 0) {
        put(t, pick(2) ? "hex(%s)" : "quote(%s)", column ? column : "'a''b'");
        return;
    }
    if (pick(6) == 0) {
        put(t, "typeof(");
        put_any(t, 1);
        put(t, ")");
        return;
    }
    static const char *const calls[] = {
        "regexp_extract(%s, '[a-m]+')",       "str_split(%s, 'a', 1)",  "reverse(%s)", "null_if_empty(%s)",
        "regexp_replace_simple(%s, 'a', '')", "concat_ws('-', %s, 'x')"};
    put(t, calls[pick(6)], column ? column : "'aba'");
}

void put_text(struct text *t, int depth)
{
    const char *column = one_of(plan_at->texts, 4);
    uint32_t kind = depth > 0 ? pick(18) : 0;
    if (kind == 14) {
        put_query_text(t);
        return;
    }
    if (kind == 15) {
        put_format(t);
        return;
    }
    if (kind == 16) {
        put_chain(t);
        return;
    }
    if (kind == 17) {
        put_text_call(t, column);
        return;
    }
    if (kind == 11) {
        put(t, "name_of(%s)", one_of(plan_at->ints, 8));
        return;
    }
    if (kind == 13) {
        static const char *const dates[] = {"date(%s, 'unixepoch')", "strftime('%%H:%%M:%%f', %s / 3.0)",
                                            "datetime(%s)"};
        put(t, dates[pick(3)], one_of(plan_at->ints, 8));
        return;
    }
    if (kind == 12) {
        put(t, "label(%s, %s)", column ? column : "NULL", one_of(plan_at->ints, 8));
        return;
    }
    if (kind == 9) {
        put(t, "printf('%s', %s, %s)", pick(2) ? "%d:%s" : "%s%5.1f", one_of(plan_at->ints, 8),
            column ? column : one_of(plan_at->ints, 8));
        return;
    }
    if (kind == 10 && column) {
        put(t, "nullif(%s, '%s')", column, pick_word());
        return;
    }
    if (!column || kind == 8) {
        put(t, "'%s'", pick_word());
        return;
    }
    switch (kind) {
    case 1:
        put(t, "upper(%s)", column);
        break;
    case 2:
        put(t, "substr(%s, 1, %u)", column, pick(3));
        break;
    case 3:
        put(t, "%s || ", column);
        put_text(t, 0);
        break;
    case 4:
        put(t, "coalesce(%s, 'none')", column);
        break;
    case 5:
        put(t, "CASE WHEN ");
        put_int(t, 0);
        put(t, " > %u THEN %s END", pick(200), column);
        break;
    default:
        put(t, "%s", column);
        break;
    }
}

void put_real(struct text *t, int depth)
{
    const char *column = one_of(plan_at->reals, 4);
    static const char *const of_one[] = {"sqrt", "ceil", "floor", "ln", "log10", "exp", "round"};
    switch (depth > 0 ? pick(12) : 0) {
    case 1:
        put_int(t, depth - 1);
        put(t, " / %u.0", pick(4));
        break;
    case 8:
        put(t, "CASE WHEN ");
        put_condition(t, 0);
        put(t, " THEN ");
        put_real(t, depth - 1);
        put(t, " ELSE %s END", pick(2) ? "0" : "-7");
        break;
    case 9:
        put(t, "iif(%s > %u, 1, ", one_of(plan_at->ints, 8), pick(100));
        put_real(t, depth - 1);
        put(t, ")");
        break;
    case 11:
        put(t, pick(2) ? "min(" : "max(");
        put_real(t, depth - 1);
        put(t, ", %s)", pick(3) ? "0" : pick(2) ? "-0.0" : "7.5");
        break;
    case 10:
        put(t, "coalesce(");
        put_real(t, depth - 1);
        put(t, ", %s)", pick(3) ? "0" : "5000000000");
        break;
    case 4:
        put(t, "round(");
        put_real(t, depth - 1);
        put(t, ", %u)", pick(4));
        break;
    case 5:
        put(t, "%s(%s)", one_of(of_one, 5), one_of(plan_at->ints, 8));
        break;
    case 2:
        put(t, "(");
        put_real(t, depth - 1);
        put(t, " %c ", "+-*/"[pick(4)]);
        put_int(t, depth - 1);
        put(t, ")");
        break;
    case 3:
        put(t, "abs(");
        put_real(t, 0);
        put(t, ")");
        break;
    default:
        if (column)
            put(t, "%s", column);
        else
            put(t, "CAST(%s AS REAL)", one_of(plan_at->ints, 8));
        break;
    }
}

static void put_varied(struct text *t);

static const char *const aggregates[] = {"min", "max", "count", "sum", "avg", "total"};
static const char *const summed[] = {"dur", "depth", "name", "ts - dur"};

void put_int(struct text *t, int depth)
{
    static const char *const operators[] = {"+", "-", "*", "/", "%", "&", "|", "<<", ">>"};
    static const char *const functions[] = {"twice", "most", "some"};
    switch (depth > 0 ? pick(18) : pick(3)) {
    case 0:
        put(t, "%u", pick(500));
        break;
    case 16:
        put(t, "%s(%s)", functions[pick(3)], one_of(plan_at->ints, 8));
        break;
    case 17:
        put(t, "nested(%s, %s)", one_of(plan_at->ints, 8), one_of(plan_at->ints, 8));
        break;
    case 13:
        put_query_int(t);
        break;
    case 14:
        put(t, "%s(%s, %s, %u)", pick(2) ? "min" : "max", one_of(plan_at->ints, 8), one_of(plan_at->ints, 8),
            pick(1000));
        break;
    case 15:
        put(t, "nullif(%s, %u)", one_of(plan_at->ints, 8), pick(5));
        break;
    case 3:
    case 4:
    case 5:
        put(t, "(");
        put_int(t, depth - 1);
        put(t, " %s ", operators[pick(pick(2) ? 4 : 9)]);
        put_int(t, depth - 1);
        put(t, ")");
        break;
    case 6:
        put(t, "-");
        put(t, "%s", one_of(plan_at->ints, 8));
        break;
    case 7:
        put(t, "CASE WHEN ");
        put_condition(t, depth - 1);
        put(t, " THEN ");
        put_int(t, depth - 1);
        put(t, pick(2) ? " ELSE 0 END" : " END");
        break;
    case 8:
        put(t, "coalesce(%s, ", one_of(plan_at->ints, 8));
        put_int(t, depth - 1);
        put(t, ")");
        break;
    case 9:
        put(t, "CAST(");
        if (pick(4))
            put_real(t, depth - 1);
        else
            put_varied(t);
        put(t, " AS INT)");
        break;
    case 10:
        put(t, pick(4) ? "length(" : "unicode(");
        put_text(t, 1);
        put(t, ")");
        break;
    case 11:
        put(t, "%s(%s, %u)", pick(2) ? "min" : "max", one_of(plan_at->ints, 8), pick(1000));
        break;
    default:
        put(t, "%s", one_of(plan_at->ints, 8));
        break;
    }
}

void put_condition(struct text *t, int depth)
{
    static const char *const compare[] = {
        "=", "!=", "<", "<=", ">", ">=", "IS", "IS NOT", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"};
    static const char *const matches[] = {"LIKE '%a%'", "GLOB '*a*'",    "LIKE '!a%' ESCAPE '!'",
                                          "LIKE '*a*'", "REGEXP 'a|b$'", "GLOB '[a-k]*'"};
    switch (pick(depth > 0 ? 12 : 5)) {
    case 11:
        put_query_condition(t);
        break;
    case 0: {
        const char *left = pick_collation();
        put_text(t, 1);
        put(t, "%s ", left);
        if (pick(6) == 0) {
            put(t, "%sIN ('A', '%s', 'b')", pick(3) ? "" : "NOT ", pick_word());
            break;
        }
        put(t, "%s ", compare[pick(10)]);
        put_text(t, 0);
        put(t, "%s", pick_collation());
        break;
    }
    case 1:
        put(t, "%s IS %sNULL", one_of(plan_at->ints, 8), pick(2) ? "NOT " : "");
        break;
    case 2:
        put_real(t, 1);
        put(t, " %s ", compare[pick(10)]);
        put_int(t, 1);
        break;
    case 5:
        put(t, "(");
        put_condition(t, depth - 1);
        put(t, pick(2) ? " OR " : " AND ");
        put_condition(t, depth - 1);
        put(t, ")");
        break;
    case 6:
        put(t, "NOT ");
        put_condition(t, depth - 1);
        break;
    case 7:
        put_int(t, 1);
        if (pick(2))
            put(t, " %sBETWEEN %u AND %u", pick(3) ? "" : "NOT ", pick(100), pick(2000));
        else
            put(t, " %s (SELECT %s(%s) FROM v_slice WHERE depth < %u)", compare[pick(10)], one_of(aggregates, 6),
                one_of(summed, 4), pick(4));
        break;
    case 8:
        put(t, "%s %sIN (%u, %u, %s)", one_of(plan_at->ints, 8), pick(3) ? "" : "NOT ", pick(30), pick(30),
            pick(3) ? "7" : "NULL");
        break;
    case 9:
        put_text(t, 0);
        put(t, " %s%s", pick(4) ? "" : "NOT ", matches[pick(6)]);
        break;
    case 10:
        if (pick(3) == 0) {
            put_varied(t);
            put(t, " %s %s", compare[pick(10)], pick(3) ? "7" : pick(2) ? "'b'" : "0.0");
            break;
        }
        /* fall through */
    default:
        put_int(t, depth > 0 ? 1 : 0);
        put(t, " %s ", compare[pick(10)]);
        put_int(t, 0);
        break;
    }
}

/* Numbers in some rows and texts in others. */
static void put_varied(struct text *t)
{
    static const char *const others[] = {"'none'", "'7'", "7", "7.0", "0", "-0.0"};
    uint32_t kind = pick(3);
    put(t, kind == 0 ? "coalesce(" : kind == 1 ? "ifnull(" : "iif(");
    if (kind == 2) {
        put_condition(t, 0);
        put(t, ", ");
    }
    pick(3) == 0 ? put_text(t, 0) : pick(2) ? put_int(t, 0) : put_real(t, 0);
    put(t, ", %s)", others[pick(6)]);
}

void put_any(struct text *t, int depth)
{
    if (depth > 0 && pick(12) == 0) {
        put_varied(t);
        return;
    }
    switch (pick(5)) {
    case 0:
        put_text(t, depth);
        break;
    case 1:
        put_real(t, depth);
        break;
    default:
        put_int(t, depth);
        break;
    }
}

/* Row values, which a plan knows in conjunctions only. */
static void put_rows_compared(struct text *t)
{
    static const char *const operators[] = {"=", "<", "<=", ">", ">=", "!=", "IS", "IS NOT"};
    const char *a = one_of(plan_at->ints, 8), *b = one_of(plan_at->ints, 8), *c = one_of(plan_at->ints, 8),
               *w = one_of(plan_at->texts, 4);
    if (pick(4) == 0) {
        put(t, "(%s, %s) BETWEEN (%u, %s) AND (%u, 100)", a, b, pick(50), c, 50 + pick(400));
        return;
    }
    put(t, "(%s, %s, %s) %s (", a, w ? w : b, b, operators[pick(8)]);
    put_int(t, 1);
    put(t, w ? ", '%s'" : ", %s", w ? pick_word() : c);
    put(t, ", %s)", pick(8) ? c : "NULL");
}

void put_from(struct text *t)
{
    char from[600];
    snprintf(from, sizeof from, "%s", plan_at->from);
    char *mark = strstr(from, " WHERE_");
    if (mark)
        *mark = 0;
    put(t, " FROM %s", from);
    for (int i = 0; pick(3) && i < 3; i++) {
        put(t, i ? " AND " : " WHERE ");
        if (pick(8) == 0)
            put_rows_compared(t);
        else
            put_condition(t, 2);
    }
}
