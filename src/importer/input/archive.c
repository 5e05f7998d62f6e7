/* Reads zip and tar files with libarchive. */
#include "importer/input/archive.h"

#include "base/libarchive.h"

#include <limits.h>
#include <string.h>

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

/* A cut between two members, or behind the last one, leaves nothing broken: only the end of the archive is missing. Of
 * a zip that is the record behind its directory, with a comment of up to 64 KiB, of a tar a block of zeros. */
static bool has_end(struct slice file)
{
    enum { TAR_BLOCK = 512, ZIP_END = 22, ZIP_COMMENT = 0xffff };
    static const uint8_t zeros[TAR_BLOCK];
    if (!slice_starts(file, "PK\3\4"))
        return file.len >= TAR_BLOCK && memcmp(file.p + file.len - TAR_BLOCK, zeros, TAR_BLOCK) == 0;
    for (size_t back = ZIP_END; back <= file.len && back <= ZIP_END + ZIP_COMMENT; back++)
        if (memcmp(file.p + file.len - back, "PK\5\6", 4) == 0)
            return true;
    return false;
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
    if (rc == 0 && !has_end(file))
        rc = error_set(err, -MRD_EFORMAT, "archive: its end is missing; members may be, too");
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
