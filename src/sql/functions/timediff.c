/* TIMEDIFF(a, b): what to add to b to come to a, as SQLite 3.43 writes it: "+0001-02-03 04:05:06.789". */
#include "sql/functions/functions.h"

#include <stdio.h>

struct date {
    int64_t year, month, day; /* month and day from 1 */
    int64_t ms;               /* of the day */
};

/* A time in any form that SQLite's date functions take. False when it is none, or (an error of the call) without
 * memory. */
static bool parse(sqlite3_context *ctx, sqlite3_value *v, struct date *out)
{
    sqlite3_stmt *stmt = NULL;
    int rc =
        sqlite3_prepare_v2(sqlite3_context_db_handle(ctx), "SELECT strftime('%Y %m %d %H %M %f', ?1)", -1, &stmt, NULL);
    double seconds;
    int year, month, day, hour, minute;
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_value(stmt, 1, v);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW)
        sqlite3_result_error_code(ctx, rc);
    bool ok = rc == SQLITE_ROW && sqlite3_column_type(stmt, 0) == SQLITE_TEXT && sqlite3_column_text(stmt, 0) &&
              sscanf((const char *)sqlite3_column_text(stmt, 0), "%d %d %d %d %d %lf", &year, &month, &day, &hour,
                     &minute, &seconds) == 6;
    if (ok)
        *out =
            (struct date){year, month, day, (int64_t)((hour * 60 + minute) * 60000) + (int64_t)(seconds * 1000 + 0.5)};
    sqlite3_finalize(stmt);
    return ok;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static int compare(const struct date *a, const struct date *b)
{
    const int64_t x[] = {a->year, a->month, a->day, a->ms}, y[] = {b->year, b->month, b->day, b->ms};
    for (int i = 0; i < 4; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void timediff(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct date a, b;
    char text[64];
    (void)argc;
    if (!parse(ctx, argv[0], &a) || !parse(ctx, argv[1], &b))
        return;
    bool negative = compare(&a, &b) < 0;
    if (negative) {
        struct date swap = a;
        a = b;
        b = swap;
    }
    struct date d = {a.year - b.year, a.month - b.month, a.day - b.day, a.ms - b.ms};
    if (d.ms < 0) {
        d.ms += 86400000;
        d.day--;
    }
    if (d.day < 0) { /* the days of the month before the later time */
        int64_t month = a.month == 1 ? 12 : a.month - 1;
        d.day += days_in_month(a.month == 1 ? a.year - 1 : a.year, month);
        d.month--;
    }
    if (d.month < 0) {
        d.month += 12;
        d.year--;
    }
    snprintf(text, sizeof text, "%c%04lld-%02lld-%02lld %02lld:%02lld:%02lld.%03lld", negative ? '-' : '+',
             (long long)d.year, (long long)d.month, (long long)d.day, (long long)(d.ms / 3600000),
             (long long)(d.ms / 60000 % 60), (long long)(d.ms / 1000 % 60), (long long)(d.ms % 1000));
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

static const struct engine_function rows[] = {
    {.name = "timediff", .n_args = 2, .scalar = timediff},
};

FUNCTION_ROWS(timediff, rows);
