/* Functions on text: REVERSE, STR_SPLIT, CONCAT, HASH, TO_TIMECODE and their like. */
#include "base/fnv.h"
#include "sql/dialect/pointer.h"
#include "sql/functions/functions.h"

#include <stdio.h>

static void reverse(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice in = function_text(argv[0]);
    char *out = sqlite3_malloc64(in.len + 1);
    if (!out) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (size_t i = 0; i < in.len; i++)
        out[i] = (char)in.p[in.len - 1 - i];
    sqlite3_result_text(ctx, out, (int)in.len, sqlite3_free);
}

static void str_split(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]) || function_is_null(argv[1]) || function_is_null(argv[2]))
        return;
    struct slice text = function_text(argv[0]), delim = function_text(argv[1]);
    int64_t want = sqlite3_value_int64(argv[2]);
    if (delim.len == 0) {
        function_error(ctx, "STR_SPLIT: delimiter must not be empty");
        return;
    }
    if (want < 0 || sqlite3_value_type(argv[2]) != SQLITE_INTEGER) {
        function_error(ctx, "STR_SPLIT: field number must be a non-negative integer");
        return;
    }
    for (;;) {
        const uint8_t *end = memmem(text.p, text.len, delim.p, delim.len);
        if (want-- == 0) {
            sqlite3_result_text(ctx, (const char *)text.p, (int)(end ? (size_t)(end - text.p) : text.len),
                                SQLITE_TRANSIENT);
            return;
        }
        if (!end)
            return;
        text.len -= (size_t)(end - text.p) + delim.len;
        text.p = end + delim.len;
    }
}

/* concat(a, …) takes NULL as nothing; concat_ws(sep, a, …) leaves NULLs out, and is NULL when the separator is. */
static void join(sqlite3_context *ctx, struct slice sep, int argc, sqlite3_value **argv)
{
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    bool any = false;
    for (int i = 0; i < argc; i++) {
        if (function_is_null(argv[i]))
            continue;
        struct slice t = function_text(argv[i]);
        if (any && sep.len)
            sqlite3_str_append(s, (const char *)sep.p, (int)sep.len);
        sqlite3_str_append(s, (const char *)t.p, (int)t.len);
        any = true;
    }
    function_result_built(ctx, s);
}

static void concat(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    join(ctx, slice_of("", 0), argc, argv);
}

static void concat_ws(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    if (argc < 2)
        function_error(ctx, "wrong number of arguments to function concat_ws()");
    else if (!function_is_null(argv[0]))
        join(ctx, function_text(argv[0]), argc - 1, argv + 1);
}

static void octet_length(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    int n =
        sqlite3_value_type(argv[0]) == SQLITE_BLOB ? (int)function_bytes(argv[0]).len : (int)function_text(argv[0]).len;
    sqlite3_result_int(ctx, n);
}

/* FNV-1a, 64 bits, over the bytes of integers and texts. */
static void hash(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    uint64_t h = FNV1A_BASIS;
    for (int i = 0; i < argc; i++) {
        uint8_t le[8];
        struct slice bytes = {le, 8};
        int type = sqlite3_value_type(argv[i]);
        if (type == SQLITE_INTEGER) {
            uint64_t v = (uint64_t)sqlite3_value_int64(argv[i]);
            for (int k = 0; k < 8; k++)
                le[k] = (uint8_t)(v >> (8 * k));
        } else if (type == SQLITE_TEXT) {
            bytes = function_text(argv[i]);
        } else {
            function_error(ctx, "HASH: arg %d has unknown type", i);
            return;
        }
        h = fnv1a(h, bytes.p, bytes.len);
    }
    sqlite3_result_int64(ctx, (int64_t)h);
}

/* Hex numbers of at least n digits (n < 0: any) become "<num>"; a 0x in front stays there. */
static void strip_hex(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice in = function_text(argv[0]);
    int64_t least = sqlite3_value_int64(argv[1]);
    if (least < 1)
        least = 1;
    char *out = sqlite3_malloc64(5 * in.len + 1);
    size_t n = 0;
    if (!out) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    for (size_t i = 0; i < in.len;) {
        size_t digits = i;
        bool number = false, prefix = i + 2 < in.len && in.p[i] == '0' && (in.p[i + 1] | 0x20) == 'x';
        if (prefix)
            digits += 2;
        size_t start = digits;
        while (digits < in.len && ((in.p[digits] >= '0' && in.p[digits] <= '9') ||
                                   ((in.p[digits] | 0x20) >= 'a' && (in.p[digits] | 0x20) <= 'f'))) {
            number |= in.p[digits] <= '9';
            digits++;
        }
        /* a word such as "dead" is a word: a run counts when it has a decimal digit or the 0x in front */
        if ((int64_t)(digits - start) >= least && (number || prefix)) {
            memcpy(out + n, in.p + i, start - i);
            n += start - i;
            memcpy(out + n, "<num>", 5);
            n += 5;
            i = digits;
        } else {
            size_t end = digits > i ? digits : i + 1;
            memcpy(out + n, in.p + i, end - i);
            n += end - i;
            i = end;
        }
    }
    sqlite3_result_text(ctx, out, (int)n, sqlite3_free);
}

/* HH:MM:SS mmm uuu nnn */
static void to_timecode(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    char text[64];
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER) {
        function_error(ctx, "TO_TIMECODE: first argument should be timestamp");
        return;
    }
    int64_t ns = sqlite3_value_int64(argv[0]);
    int64_t s = ns / 1000000000;
    snprintf(text, sizeof text, "%02lld:%02lld:%02lld %03lld %03lld %03lld", (long long)(s / 3600),
             (long long)(s / 60 % 60), (long long)(s % 60), (long long)(ns / 1000000 % 1000),
             (long long)(ns / 1000 % 1000), (long long)(ns % 1000));
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

/* if(a, b[, a, b]…[, c]): the value behind the first condition that holds. */
static void if_else(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    int i = 0;
    if (argc < 2) {
        function_error(ctx, "wrong number of arguments to function if()");
        return;
    }
    for (; i + 1 < argc; i += 2)
        if (!function_is_null(argv[i]) && sqlite3_value_double(argv[i]) != 0) {
            result_of_statement(ctx, argv[i + 1]);
            return;
        }
    if (i < argc)
        result_of_statement(ctx, argv[i]);
}

static void append_utf8(sqlite3_str *s, uint32_t c)
{
    char b[4];
    int n = 0;
    if (c < 0x80) {
        b[n++] = (char)c;
    } else if (c < 0x800) {
        b[n++] = (char)(0xc0 | c >> 6);
        b[n++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        b[n++] = (char)(0xe0 | c >> 12);
        b[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        b[n++] = (char)(0x80 | (c & 0x3f));
    } else {
        b[n++] = (char)(0xf0 | (c >> 18 & 7));
        b[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        b[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        b[n++] = (char)(0x80 | (c & 0x3f));
    }
    sqlite3_str_append(s, b, n);
}

/* \XXXX, \uXXXX, \+XXXXXX, \UXXXXXXXX and \\ */
static void unistr(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice in = function_text(argv[0]);
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    bool bad = false;
    for (size_t i = 0; i < in.len && !bad; i++) {
        if (in.p[i] != '\\') {
            sqlite3_str_append(s, (const char *)in.p + i, 1);
            continue;
        }
        uint8_t kind = i + 1 < in.len ? in.p[i + 1] : 0;
        size_t digits = kind == 'u' ? 4 : kind == '+' ? 6 : kind == 'U' ? 8 : 4;
        size_t start = kind == 'u' || kind == '+' || kind == 'U' ? i + 2 : i + 1;
        if (kind == '\\') {
            sqlite3_str_append(s, "\\", 1);
            i++;
            continue;
        }
        uint32_t code = 0;
        for (size_t k = 0; k < digits; k++) {
            uint8_t c = start + k < in.len ? in.p[start + k] : 0;
            int v = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
            bad |= v < 0;
            code = code << 4 | (uint32_t)(v & 15);
        }
        append_utf8(s, code);
        i = start + digits - 1;
    }
    function_result_built(ctx, s);
    if (bad)
        function_error(ctx, "invalid Unicode escape");
}

/* As quote(), but a text with control characters becomes a call of unistr(). */
static void unistr_quote(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct slice in = function_text(argv[0]);
    bool control = false;
    for (size_t i = 0; i < in.len; i++)
        control |= in.p[i] < 0x20;
    sqlite3_str *s = sqlite3_str_new(sqlite3_context_db_handle(ctx));
    switch (sqlite3_value_type(argv[0])) {
    case SQLITE_TEXT:
        if (!control) {
            sqlite3_str_appendf(s, "%Q", (const char *)in.p);
            break;
        }
        sqlite3_str_appendall(s, "unistr('");
        for (size_t i = 0; i < in.len; i++)
            if (in.p[i] < 0x20)
                sqlite3_str_appendf(s, "\\u%04x", in.p[i]);
            else if (in.p[i] == '\\' || in.p[i] == '\'')
                sqlite3_str_appendf(s, "%c%c", in.p[i], in.p[i]);
            else
                sqlite3_str_append(s, (const char *)in.p + i, 1);
        sqlite3_str_appendall(s, "')");
        break;
    case SQLITE_NULL:
        sqlite3_str_appendall(s, "NULL");
        break;
    case SQLITE_BLOB:
        sqlite3_str_appendall(s, "X'");
        in = function_bytes(argv[0]);
        for (size_t i = 0; i < in.len; i++)
            sqlite3_str_appendf(s, "%02X", in.p[i]);
        sqlite3_str_appendall(s, "'");
        break;
    default:
        sqlite3_str_append(s, (const char *)in.p, (int)in.len);
    }
    function_result_built(ctx, s);
}

/* A message without content is not a message. */
static void null_if_empty(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (sqlite3_value_type(argv[0]) != SQLITE_BLOB && !function_is_null(argv[0]))
        function_error(ctx, "NULL_IF_EMPTY: should only be called with bytes argument");
    else if (sqlite3_value_bytes(argv[0]) > 0)
        sqlite3_result_value(ctx, argv[0]);
}

static const struct engine_function rows[] = {
    {.name = "reverse", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = reverse},
    {.name = "__intrinsic_reverse", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = reverse},
    {.name = "str_split", .n_args = 3, .flags = SQLITE_DETERMINISTIC, .scalar = str_split},
    {.name = "concat", .n_args = -1, .takes = "*v", .flags = SQLITE_DETERMINISTIC, .scalar = concat},
    {.name = "concat_ws", .n_args = -1, .takes = "v*v", .flags = SQLITE_DETERMINISTIC, .scalar = concat_ws},
    {.name = "octet_length", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = octet_length},
    {.name = "hash", .n_args = -1, .takes = "*v", .flags = SQLITE_DETERMINISTIC, .scalar = hash},
    {.name = "__intrinsic_strip_hex", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = strip_hex},
    {.name = "to_timecode", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = to_timecode},
    {.name = "__intrinsic_to_timecode", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = to_timecode},
    {.name = "if", .n_args = -1, .takes = "vv*v", .flags = SQLITE_DETERMINISTIC, .scalar = if_else},
    /* not for 3 arguments: SQLite's own iif() leaves alone what it does not need */
    {.name = "iif", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = if_else},
    {.name = "iif", .n_args = 4, .flags = SQLITE_DETERMINISTIC, .scalar = if_else},
    {.name = "iif", .n_args = 5, .flags = SQLITE_DETERMINISTIC, .scalar = if_else},
    {.name = "iif", .n_args = 6, .flags = SQLITE_DETERMINISTIC, .scalar = if_else},
    {.name = "iif", .n_args = 7, .flags = SQLITE_DETERMINISTIC, .scalar = if_else},
    {.name = "null_if_empty", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = null_if_empty},
    {.name = "unistr", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = unistr},
    {.name = "unistr_quote", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = unistr_quote},
};

FUNCTION_ROWS(text, rows);
