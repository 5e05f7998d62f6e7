/* The file that conversions write to. */
#include "shell/convert/out_file.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output_file.h"
#include "shell/interrupt.h"
#include "shell/ticker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER_BYTES = 256 << 10 };

struct out_file {
    const char *path;        /* as messages name it */
    struct output_file file; /* not for standard output */
    bool is_file;
    bool shared;
    struct ticker ticker; /* until bytes show there */
    struct error error;   /* the first failure */
    bool packing;
    z_stream z;
    size_t n;
    uint8_t buf[BUFFER_BYTES];
    uint8_t packed[BUFFER_BYTES];
};

struct out_file *out_file_open(const char *path, struct tp *tp, struct error *err)
{
    struct out_file *o = mem_alloc(sizeof *o);
    if (!o) {
        error_set(err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    memset(o, 0, offsetof(struct out_file, buf));
    if (!path || strcmp(path, "-") == 0) {
        o->shared = ticker_shares(STDOUT_FILENO);
        ticker_start(&o->ticker, "Converting", true);
        o->path = "standard output";
        return o; /* nothing is left behind: Ctrl-C may end the program */
    }
    o->path = path;
    interrupt_command(tp); /* before there is something to leave behind */
    if (output_file_open(&o->file, path, err) < 0) {
        mem_free(o);
        return NULL;
    }
    o->is_file = true;
    ticker_start(&o->ticker, "Converting", true);
    return o;
}

static int put(struct out_file *o, const void *bytes, size_t len)
{
    if (o->shared)
        ticker_stop(&o->ticker);
    if (o->is_file && interrupt_taken())
        error_set(&o->error, -MRD_ECANCELLED, "interrupted");
    if (!o->error.code && o->is_file)
        output_file_write(&o->file, bytes, len, &o->error);
    else if (!o->error.code && file_write_all(STDOUT_FILENO, bytes, len, &o->error) < 0)
        error_prefix(&o->error, "%s", o->path);
    return o->error.code;
}

/* What deflate() gives for bytes[0, len); `flush` as it wants it. */
static int put_packed(struct out_file *o, const void *bytes, size_t len, int flush)
{
    o->z.next_in = (Bytef *)(uintptr_t)bytes;
    o->z.avail_in = (uInt)len;
    do {
        o->z.next_out = o->packed;
        o->z.avail_out = sizeof o->packed;
        deflate(&o->z, flush);
        put(o, o->packed, sizeof o->packed - o->z.avail_out);
    } while (o->z.avail_out == 0 && !o->error.code);
    return o->error.code;
}

static int flush(struct out_file *o, int flush_mode)
{
    size_t n = o->n;
    o->n = 0;
    return o->packing ? put_packed(o, o->buf, n, flush_mode) : put(o, o->buf, n);
}

int out_file_pack(struct out_file *o, enum out_packing packing)
{
    enum { LARGEST_WINDOW = 15, WITH_GZIP_HEAD = 16, DEFAULT_MEMORY = 8 };
    int window = packing == OUT_GZIP ? LARGEST_WINDOW + WITH_GZIP_HEAD : LARGEST_WINDOW;
    flush(o, Z_NO_FLUSH);
    if (packing == OUT_PLAIN || o->error.code)
        return o->error.code;
    if (deflateInit2(&o->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, DEFAULT_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        return error_set(&o->error, -MRD_ENOMEM, "%s: out of memory", o->path);
    o->packing = true;
    return 0;
}

int out_file_write(struct out_file *o, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    while (len && !o->error.code) {
        size_t room = sizeof o->buf - o->n, take = len < room ? len : room;
        memcpy(o->buf + o->n, p, take);
        o->n += take;
        p += take;
        len -= take;
        if (o->n == sizeof o->buf)
            flush(o, Z_NO_FLUSH);
    }
    return o->error.code;
}

int out_file_text(struct out_file *o, const char *text)
{
    return out_file_write(o, text, strlen(text));
}

int out_file_printf(struct out_file *o, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return out_file_write(o, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

int out_file_sink(void *ctx, const void *bytes, size_t len)
{
    return out_file_write(ctx, bytes, len);
}

int out_file_finish(struct out_file *o, int rc, struct error *err)
{
    if (!o)
        return rc;
    if (!rc)
        flush(o, Z_FINISH);
    if (o->packing)
        deflateEnd(&o->z);
    if (!o->error.code && rc)
        error_set(&o->error, rc, "%s", err->text);
    if (o->is_file) {
        output_file_close(&o->file, o->error.code, &o->error);
        interrupt_command(NULL);
    }
    ticker_stop(&o->ticker);
    if (o->error.code) {
        rc = o->error.code;
        error_set(err, rc, "%s", o->error.text);
    }
    mem_free(o);
    return rc;
}
