/* Reads zip and tar files with libarchive. */
#include "importer/input/archive.h"

#include "base/libarchive.h"

#include <limits.h>

enum { MAX_MEMBERS = 1 << 16 };

uint64_t unpack_limit(uint64_t packed_bytes)
{
    /* Traces shrink to a tenth, idle ones to a fiftieth; what deflate can do at most, for zeros, is a thousandth. */
    enum { BASE = 64 << 20, RATIO = 200 };
    return packed_bytes < (UINT64_MAX - BASE) / RATIO ? BASE + RATIO * packed_bytes : UINT64_MAX;
}

int unpack_limit_error(struct error *err)
{
    return error_set(
        err, -MRD_ELIMIT,
        "unpacks to more than 200 times its size: it looks like a decompression bomb; if it is not, unpack "
        "it and load its members");
}

/* Reads what there is of a member. Only running out of memory or of room is an error. *unpacked is what all members so
 * far have come to. */
static int read_member(const struct libarchive *l, struct archive *a, struct archive_member *m, uint64_t *room,
                       uint64_t *unpacked, struct error *err)
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
        la_ssize_t n = l->archive_read_data(a, m->bytes + m->len, cap - m->len);
        m->damaged |= n < 0;
        if (n <= 0)
            return 0;
        *unpacked += (uint64_t)n;
        int64_t used = l->archive_filter_bytes(a, -1);
        if ((uint64_t)n > *room || *unpacked > unpack_limit(used > 0 ? (uint64_t)used : 0)) {
            unpack_limit_error(err);
            return error_prefix(err, "%s", m->name);
        }
        *room -= (uint64_t)n;
        m->len += (size_t)n;
    }
}

static int read_all(const struct libarchive *l, struct archive *a, archive_members *out, uint64_t *room,
                    struct error *err)
{
    struct archive_entry *entry;
    uint64_t unpacked = 0;
    for (unsigned n = 0;; n++) {
        int status = l->archive_read_next_header(a, &entry);
        if (status == ARCHIVE_EOF)
            return 0;
        if (status < ARCHIVE_WARN)
            return error_set(err, -MRD_EFORMAT, "archive: %s", l->archive_error_string(a));
        if (n == MAX_MEMBERS)
            return error_set(err, -MRD_ELIMIT, "archive: more than %d members", MAX_MEMBERS);
        const char *name = l->archive_entry_pathname(entry);
        if (l->archive_entry_filetype(entry) != AE_IFREG)
            continue;
        struct archive_member m = {.name = mem_strdup(name ? name : "")};
        if (!m.name || !vec_push(out, m)) {
            mem_free(m.name);
            return error_set(err, -MRD_ENOMEM, "out of memory");
        }
        int rc = read_member(l, a, vec_last(out), room, &unpacked, err);
        if (rc)
            return rc;
    }
}

int archive_read_members(struct slice file, archive_members *out, uint64_t *room, struct error *err)
{
    struct libarchive l;
    int rc = libarchive_load(&l, err);
    if (rc)
        return rc;
    struct archive *a = l.archive_read_new();
    if (!a)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    l.archive_read_support_format_zip(a);
    l.archive_read_support_format_tar(a);
    l.archive_read_support_format_gnutar(a);
    if (l.archive_read_open_memory(a, file.p, file.len) != ARCHIVE_OK)
        rc = error_set(err, -MRD_EFORMAT, "archive: %s", l.archive_error_string(a));
    else
        rc = read_all(&l, a, out, room, err);
    l.archive_read_free(a);
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
