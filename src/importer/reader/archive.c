/* Owns reading zip and tar files with libarchive. */
#include "importer/reader/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>

static int read_member(struct archive *a, struct archive_member *m, struct error *err)
{
    size_t cap = 0;
    for (;;) {
        if (m->len == cap) {
            cap = cap ? cap * 2 : 256 << 10;
            uint8_t *grown = mem_realloc(m->bytes, cap);
            if (!grown)
                return error_set(err, -MRD_ENOMEM, "out of memory");
            m->bytes = grown;
        }
        la_ssize_t n = archive_read_data(a, m->bytes + m->len, cap - m->len);
        if (n < 0)
            return error_set(err, -MRD_EFORMAT, "%s: %s", m->name, archive_error_string(a));
        if (n == 0)
            return 0;
        m->len += (size_t)n;
    }
}

static int read_all(struct archive *a, archive_members *out, struct error *err)
{
    struct archive_entry *entry;
    for (;;) {
        int status = archive_read_next_header(a, &entry);
        if (status == ARCHIVE_EOF)
            return 0;
        if (status < ARCHIVE_WARN)
            return error_set(err, -MRD_EFORMAT, "archive: %s", archive_error_string(a));
        const char *name = archive_entry_pathname(entry);
        if (archive_entry_filetype(entry) != AE_IFREG)
            continue;
        struct archive_member m = {.name = mem_strdup(name ? name : "")};
        if (!m.name || !vec_push(out, m)) {
            mem_free(m.name);
            return error_set(err, -MRD_ENOMEM, "out of memory");
        }
        int rc = read_member(a, vec_last(out), err);
        if (rc)
            return rc;
    }
}

int archive_read_members(struct slice file, archive_members *out, struct error *err)
{
    struct archive *a = archive_read_new();
    if (!a)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    archive_read_support_format_zip(a);
    archive_read_support_format_tar(a);
    archive_read_support_format_gnutar(a);
    int rc;
    if (archive_read_open_memory(a, file.p, file.len) != ARCHIVE_OK)
        rc = error_set(err, -MRD_EFORMAT, "archive: %s", archive_error_string(a));
    else
        rc = read_all(a, out, err);
    archive_read_free(a);
    return rc;
}

void archive_members_free(archive_members *members)
{
    for (size_t i = 0; i < members->n; i++) {
        mem_free(members->p[i].name);
        mem_free(members->p[i].bytes);
    }
    vec_free(members);
}
