/* Texts of times: strftime(), date(), time() and datetime() of seconds since 1970. They are computed as SQLite does:
 * milliseconds, in the Gregorian calendar whatever the year. */
#include "sql/plan/plan_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EPOCH_MS  210866760000000   /* of 1970, as a Julian day */
#define LEAST_MS  (-49512816000000) /* 0401-01-01: before that SQLite had a day of its own, 0300-02-29 */
#define BEHIND_MS 253402300800000   /* 10000-01-01 */

enum { DAY_MS = 86400000 };

struct moment {
    int64_t ms;     /* since 1970 */
    int64_t days;   /* the same */
    int32_t of_day; /* milliseconds */
    int year, month, day, day_of_year;
};

/* False: SQLite is to be asked. */
static bool milliseconds(enum plan_type type, int64_t word, int64_t *out)
{
    volatile double scaled = (type == PLAN_REAL ? column_f64(word) : (double)word) * 1000.0;
    double julian = scaled + (double)EPOCH_MS;
    if (!(julian >= 0 && julian < 464269060800000.0))
        return false;
#ifdef __FP_FAST_FMA /* SQLite may have been compiled to round once where this rounds twice */
    double part = julian + 0.5 - floor(julian + 0.5);
    if (type == PLAN_REAL && (part < 0.1 || part > 0.9))
        return false;
#endif
    *out = (int64_t)(julian + 0.5) - EPOCH_MS;
    return *out >= LEAST_MS && *out < BEHIND_MS;
}

/* Days of the years before `year` of the Gregorian calendar, whose years begin with March here: a day that only some
 * have comes last. */
static int days_before(int year)
{
    return 365 * year + year / 4 - year / 100 + year / 400;
}

/* gmtime_r() takes as long, and counts leap seconds where the zone of the process does; SQLite never does. */
static struct moment moment_of(int64_t ms)
{
    enum { FROM_MARCH = 719468, YEARS = 400, DAYS = 146097, MARCH = 3, TO_MARCH = 59, FROM_NEW_YEAR = 306 };
    static const int before[] = {0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337, 366};
    int64_t days = (ms - LEAST_MS) / DAY_MS + LEAST_MS / DAY_MS;
    struct moment m = {.ms = ms, .days = days, .of_day = (int32_t)((ms - LEAST_MS) % DAY_MS)};
    int day = (int)days + FROM_MARCH, year = (int)((int64_t)day * YEARS / DAYS), month = 0;
    while (days_before(year) > day)
        year--;
    while (days_before(year + 1) <= day)
        year++;
    day -= days_before(year);
    while (day >= before[month + 1])
        month++;
    m.day = day - before[month] + 1;
    m.month = day < FROM_NEW_YEAR ? month + MARCH : month + MARCH - 12;
    m.year = day < FROM_NEW_YEAR ? year : year + 1;
    bool leap = m.year % 4 == 0 && (m.year % 100 != 0 || m.year % 400 == 0);
    m.day_of_year = (day < FROM_NEW_YEAR ? day + TO_MARCH + leap : day - FROM_NEW_YEAR) + 1;
    return m;
}

static size_t put_digits(char *out, int value, int digits)
{
    for (int i = digits; i-- > 0; value /= 10)
        out[i] = (char)('0' + value % 10);
    return (size_t)digits;
}

/* What a letter stands for, in `out`. */
static size_t put_part(const struct moment *m, char letter, char out[24])
{
    int seconds = m->of_day / 1000;
    switch (letter) {
    case 'Y':
        return put_digits(out, m->year, 4);
    case 'm':
        return put_digits(out, m->month, 2);
    case 'd':
        return put_digits(out, m->day, 2);
    case 'H':
        return put_digits(out, seconds / 3600, 2);
    case 'M':
        return put_digits(out, seconds / 60 % 60, 2);
    case 'S':
        return put_digits(out, seconds % 60, 2);
    case 'f':
        put_digits(out, seconds % 60, 2);
        out[2] = '.';
        return 3 + put_digits(out + 3, m->of_day % 1000, 3);
    case 'j':
        return put_digits(out, m->day_of_year, 3);
    case 'w':
        return put_digits(out, (int)((m->days + 4 + 7 * DAY_MS) % 7), 1);
    case 's':
        return (size_t)snprintf(out, 24, "%lld", (long long)((m->ms - LEAST_MS) / 1000 + LEAST_MS / 1000));
    default:
        out[0] = '%';
        return 1;
    }
}

bool format_is_of_time(struct slice format)
{
    const char *at = (const char *)format.p, *end = at + format.len;
    if (!format.len || memchr(at, 0, format.len))
        return false;
    for (; at < end; at++)
        if (*at == '%' && (++at == end || !strchr("YmdHMSfjws%", *at)))
            return false;
    return true;
}

enum format_result format_time(struct format_text *t, const struct strpool *strings, enum plan_type type, int64_t word,
                               struct slice format)
{
    int64_t ms;
    char some[128];
    size_t n = 0;
    (void)strings;
    if (!milliseconds(type, word, &ms))
        return FORMAT_ASK;
    struct moment m = moment_of(ms);
    const char *at = (const char *)format.p, *end = at + format.len;
    for (; at < end; at++) {
        if (n + 24 > sizeof some) {
            if (!format_put_text(t, slice_of(some, n)))
                return FORMAT_NO_MEMORY;
            n = 0;
        }
        if (*at == '%')
            n += put_part(&m, *++at, some + n);
        else
            some[n++] = *at;
    }
    return format_put_text(t, slice_of(some, n)) ? FORMAT_TEXT : FORMAT_NO_MEMORY;
}
