/* What an exported trace is called in each of its rows. */
#include "export/source.h"
#include "storage/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The only UUID of the metadata: 1 there is one. */
static bool find_uuid(const struct storage *st, char *id)
{
    const struct table *t = &st->t[T_metadata];
    strid key = strpool_find(&st->strings, "trace_uuid", 10), found = 0;
    for (uint32_t row = 0; key && row < t->n_rows; row++) {
        strid value = (strid)table_get(t, metadata_c_str_value, row);
        if ((strid)table_get(t, metadata_c_name, row) != key || !value || value == found)
            continue;
        if (found)
            return false;
        found = value;
    }
    const char *text = strpool_cstr(&st->strings, found);
    if (strspn(text, "0123456789abcdefABCDEF-") != EXPORT_TRACE_ID_SIZE - 1 || text[EXPORT_TRACE_ID_SIZE - 1] != 0)
        return false;
    memcpy(id, text, EXPORT_TRACE_ID_SIZE);
    return true;
}

static int hash_file(struct sha256_ctx *h, const char *path, struct error *err)
{
    uint8_t piece[1 << 15];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "%s: cannot read it again for its name", path);
    ssize_t n;
    do {
        n = read(fd, piece, sizeof piece);
        if (n > 0)
            sha256_update(h, (size_t)n, piece);
    } while (n > 0 || (n < 0 && errno == EINTR));
    int rc = n < 0 ? error_set_errno(err, errno, "%s: cannot read it again for its name", path) : 0;
    close(fd);
    return rc;
}

static void hash_tables(struct sha256_ctx *h, const struct storage *st)
{
    const int64_t bounds[2] = {st->trace_start_ns, st->trace_end_ns};
    sha256_update(h, sizeof bounds, (const uint8_t *)bounds);
    for (size_t i = 0; i < T_COUNT; i++) {
        const struct table *t = &st->t[i];
        sha256_update(h, sizeof t->n_rows, (const uint8_t *)&t->n_rows);
        for (uint32_t c = 0; c < t->def->n_columns && t->n_rows; c++) {
            const int64_t ends[2] = {table_get(t, c, 0), table_get(t, c, t->n_rows - 1)};
            sha256_update(h, sizeof ends, (const uint8_t *)ends);
        }
    }
}

static bool is_file(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* RFC 9562: version 8, made as its maker likes. */
static void finish_id(struct sha256_ctx *h, char id[EXPORT_TRACE_ID_SIZE])
{
    uint8_t d[16];
    sha256_digest(h, sizeof d, d);
    d[6] = (uint8_t)((d[6] & 0x0f) | 0x80);
    d[8] = (uint8_t)((d[8] & 0x3f) | 0x80);
    snprintf(id, EXPORT_TRACE_ID_SIZE, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", d[0],
             d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8], d[9], d[10], d[11], d[12], d[13], d[14], d[15]);
}

int export_files_id(const char *const *files, size_t n, char id[EXPORT_TRACE_ID_SIZE], struct error *err)
{
    struct sha256_ctx h;
    sha256_init(&h);
    for (size_t i = 0; i < n; i++) {
        int rc = hash_file(&h, files[i], err);
        if (rc < 0)
            return rc;
    }
    finish_id(&h, id);
    return 0;
}

int export_trace_id(struct engine *e, const char *const *files, size_t n, char id[EXPORT_TRACE_ID_SIZE],
                    struct error *err)
{
    const struct storage *st = engine_storage(e);
    if (find_uuid(st, id))
        return 0;
    bool files_only = n > 0;
    for (size_t i = 0; i < n; i++)
        files_only = files_only && is_file(files[i]);
    if (files_only)
        return export_files_id(files, n, id, err);
    struct sha256_ctx h;
    sha256_init(&h);
    hash_tables(&h, st);
    finish_id(&h, id);
    return 0;
}
