/* BASE64, UNHEX, ZSTD_COMPRESS, DEMANGLE, FILE_WRITE: bytes to text and back. */
#include "base/hex.h"
#include "base/output_file.h"
#include "demangle/demangle.h"
#include "sql/functions/functions.h"

#include <ctype.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <zstd.h>

static void to_base64(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice in = function_bytes(argv[0]);
    size_t len = BASE64_ENCODE_RAW_LENGTH(in.len);
    char *out = sqlite3_malloc64(len + 1);
    if (!out) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    base64_encode_raw(out, in.len, in.p);
    sqlite3_result_text64(ctx, out, len, sqlite3_free, SQLITE_UTF8);
}

/* In the alphabet of base64, which that of URLs is turned into; false: there are other characters. */
static bool base64_alphabet(char *out, struct slice in)
{
    for (size_t i = 0; i < in.len; i++) {
        char c = (char)in.p[i];
        out[i] = c == '-' ? '+' : c == '_' ? '/' : c;
        if (!isalnum((unsigned char)out[i]) && out[i] != '+' && out[i] != '/')
            return false;
    }
    return true;
}

/* Also the URL alphabet, with `=` at the end or without; NULL when the text is no base64. */
static void from_base64(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice in = function_text(argv[0]);
    while (in.len && in.p[in.len - 1] == '=')
        in.len--;
    uint8_t *out = sqlite3_malloc64(BASE64_DECODE_LENGTH(in.len) + 1);
    char *text = sqlite3_malloc64(in.len + 1);
    struct base64_decode_ctx decode;
    size_t n = BASE64_DECODE_LENGTH(in.len);
    base64_decode_init(&decode);
    if (!out || !text) {
        sqlite3_result_error_nomem(ctx);
    } else if (in.len % 4 != 1 && base64_alphabet(text, in) && base64_decode_update(&decode, &n, out, in.len, text)) {
        sqlite3_result_blob64(ctx, out, n, sqlite3_free);
        out = NULL;
    }
    sqlite3_free(out);
    sqlite3_free(text);
}

/* A hexadecimal number as an integer: blanks around it, a sign and 0x in front are fine. */
static void unhex(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice in = function_text(argv[0]);
    while (in.len && strchr(" \t\r\n\f\v", in.p[0]))
        in.p++, in.len--;
    while (in.len && strchr(" \t\r\n\f\v", in.p[in.len - 1]))
        in.len--;
    bool negative = in.len && in.p[0] == '-';
    if (in.len && (negative || in.p[0] == '+'))
        in.p++, in.len--;
    if (in.len > 1 && in.p[0] == '0' && (in.p[1] | 0x20) == 'x')
        in.p += 2, in.len -= 2;
    uint64_t v = 0;
    bool bad = in.len == 0 || in.len > 16;
    for (size_t i = 0; i < in.len && !bad; i++) {
        int digit = hex_digit(in.p[i]);
        bad = digit < 0;
        v = v << 4 | (uint64_t)digit;
    }
    if (bad)
        function_error(ctx, "UNHEX: invalid hex string");
    else
        sqlite3_result_int64(ctx, (int64_t)(negative ? 0 - v : v));
}

/* SQLite's own unhex(text, ignored): hex digits to a blob. */
static void unhex_bytes(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]) || function_is_null(argv[1]))
        return;
    struct slice in = function_text(argv[0]), pass = function_text(argv[1]);
    uint8_t *out = sqlite3_malloc64(in.len / 2 + 1);
    size_t n = 0;
    int half = -1;
    bool bad = !out;
    for (size_t i = 0; i < in.len && !bad; i++) {
        int v = hex_digit(in.p[i]);
        if (v < 0)
            bad = half >= 0 || !pass.len || !memchr(pass.p, in.p[i], pass.len);
        else if (half < 0)
            half = v;
        else {
            out[n++] = (uint8_t)(half << 4 | v);
            half = -1;
        }
    }
    if (bad || half >= 0)
        sqlite3_free(out);
    else
        sqlite3_result_blob(ctx, out, (int)n, sqlite3_free);
}

static void zstd_compress(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    struct slice in = function_bytes(argv[0]);
    size_t room = ZSTD_compressBound(in.len);
    void *out = sqlite3_malloc64(room + 1);
    size_t n = out ? ZSTD_compress(out, room, in.p, in.len, 3) : 0;
    if (!out || ZSTD_isError(n)) {
        sqlite3_free(out);
        function_error(ctx, "ZSTD_COMPRESS: compression failed");
        return;
    }
    sqlite3_result_blob64(ctx, out, n, sqlite3_free);
}

static void demangle_text(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (function_is_null(argv[0]))
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_TEXT) {
        function_error(ctx, "Unsupported type of arg passed to DEMANGLE");
        return;
    }
    char *out = sqlite3_malloc64(DEMANGLE_MAX_TEXT);
    size_t n = out ? demangle(function_bytes(argv[0]), false, out, DEMANGLE_MAX_TEXT) : 0;
    if (!out)
        sqlite3_result_error_nomem(ctx);
    else if (n)
        sqlite3_result_text64(ctx, out, n, SQLITE_TRANSIENT, SQLITE_UTF8);
    sqlite3_free(out);
}

/* Writes a blob to a new file. Direct use only: not from views of a foreign library. */
static void file_write(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct error err = {0};
    (void)argc;
    if (function_is_null(argv[0]) || function_is_null(argv[1]))
        return;
    if (!engine_files_allowed(function_engine(ctx))) {
        function_error(ctx, "FILE_WRITE: SQL may not write files here");
        return;
    }
    struct output_file out;
    struct slice bytes = function_bytes(argv[1]);
    int rc = output_file_open(&out, (const char *)sqlite3_value_text(argv[0]), &err);
    if (rc == 0)
        rc = output_file_write(&out, bytes.p, bytes.len, &err);
    rc = output_file_close(&out, rc, &err);
    if (rc)
        function_error(ctx, "FILE_WRITE: %s", err.text);
    else
        sqlite3_result_int64(ctx, (int64_t)bytes.len);
}

static const struct engine_function rows[] = {
    {.name = "base64_encode", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = to_base64},
    {.name = "__intrinsic_base64_encode", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = to_base64},
    {.name = "base64_decode", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = from_base64},
    {.name = "__intrinsic_base64_decode", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = from_base64},
    {.name = "unhex", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = unhex},
    {.name = "__intrinsic_unhex", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = unhex},
    {.name = "unhex", .n_args = 2, .flags = SQLITE_DETERMINISTIC, .scalar = unhex_bytes},
    {.name = "__intrinsic_zstd_compress", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = zstd_compress},
    {.name = "demangle", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = demangle_text},
    {.name = "__intrinsic_demangle", .n_args = 1, .flags = SQLITE_DETERMINISTIC, .scalar = demangle_text},
    {.name = "__intrinsic_file_write", .n_args = 2, .flags = SQLITE_DIRECTONLY, .scalar = file_write},
};

FUNCTION_ROWS(encoding, rows);
