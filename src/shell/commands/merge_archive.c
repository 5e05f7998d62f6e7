/* Writes merged traces: a tar file of the manifest and the traces as they are. */
#include "base/json_writer.h"
#include "base/libarchive.h"
#include "shell/commands/merge_plan.h"
#include "shell/text_out.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 256 << 10 };

/* --- the manifest ------------------------------------------------------------------------------------------------- */

static void put_member(struct json_writer *w, const char *key, const char *text)
{
    json_put_key(w, key);
    json_put_str(w, text);
}

static void put_clocks(struct json_writer *w, const struct merge_plan *p, const struct merge_file *f)
{
    const struct merge_file *to = &p->files.p[f->to];
    const char *clock = merge_file_clock(f), *to_clock = merge_file_clock(to);
    json_put_break(w, "\n    ");
    json_put_key(w, "clocks");
    json_put_open(w, '{');
    if (clock)
        put_member(w, "clock", clock);
    if (f->clock_machine)
        put_member(w, "machine", f->clock_machine);
    json_put_key(w, "sync_to");
    json_put_open(w, '{');
    put_member(w, "file", to->member);
    if (to_clock)
        put_member(w, "clock", to_clock);
    if (to->clock_machine)
        put_member(w, "machine", to->clock_machine);
    json_put_close(w, '}');
    json_put_key(w, "offset_ns");
    json_put_int(w, f->offset_ns);
    json_put_close(w, '}');
}

static void put_file(struct json_writer *w, const struct merge_plan *p, const struct merge_file *f)
{
    json_put_break(w, "\n   ");
    json_put_open(w, '{');
    put_member(w, "path", f->member);
    if (f->machine) {
        json_put_key(w, "machine");
        json_put_open(w, '{');
        put_member(w, "name", f->machine);
        json_put_close(w, '}');
    }
    if (f->machines.n) {
        json_put_key(w, "machines");
        json_put_open(w, '[');
        for (size_t i = 0; i < f->machines.n; i++) {
            json_put_open(w, '{');
            json_put_key(w, "id");
            json_put_int(w, f->machines.p[i].id);
            put_member(w, "name", f->machines.p[i].name);
            json_put_close(w, '}');
        }
        json_put_close(w, ']');
    }
    if (f->has_offset)
        put_clocks(w, p, f);
    json_put_close(w, '}');
}

static bool is_integer(const char *s)
{
    char *end;
    errno = 0;
    strtoll(s, &end, 10);
    return end != s && !*end && !errno && (s[0] == '-' || (s[0] >= '0' && s[0] <= '9')) &&
           (s[s[0] == '-'] != '0' || !s[1 + (s[0] == '-')]);
}

static void put_timeline(struct json_writer *w, const struct merge_plan *p)
{
    const struct merge_file *f = &p->files.p[p->timeline];
    json_put_break(w, "\n  ");
    json_put_key(w, "trace_time");
    json_put_open(w, '{');
    put_member(w, "clock", p->timeline_clock);
    put_member(w, "file", f->member);
    if (f->clock_machine)
        put_member(w, "machine", f->clock_machine);
    json_put_close(w, '}');
}

static void put_attributes(struct json_writer *w, const struct merge_plan *p)
{
    json_put_break(w, "\n  ");
    json_put_key(w, "attributes");
    json_put_open(w, '{');
    for (size_t i = 0; i < p->attributes.n; i++) {
        const char *value = p->attributes.p[i].value;
        json_put_key(w, p->attributes.p[i].key);
        if (is_integer(value))
            json_put_raw(w, value, strlen(value));
        else
            json_put_str(w, value);
    }
    json_put_close(w, '}');
}

static void put_manifest(struct text_out *o, const struct merge_plan *p)
{
    struct json_writer w = {.put = out_put, .ctx = o, .spaced = true};
    json_put_open(&w, '{');
    json_put_key(&w, "perfetto_manifest");
    json_put_open(&w, '{');
    json_put_key(&w, "version");
    json_put_int(&w, 1);
    if (p->has_timeline)
        put_timeline(&w, p);
    json_put_break(&w, "\n  ");
    json_put_key(&w, "files");
    json_put_open(&w, '[');
    for (size_t i = 0; i < p->files.n; i++)
        put_file(&w, p, &p->files.p[i]);
    json_put_close(&w, ']');
    if (p->attributes.n)
        put_attributes(&w, p);
    json_put_close(&w, '}');
    json_put_close(&w, '}');
    out_text(o, "\n");
}

/* The manifest as a file in memory; -1 when there is none. */
static int manifest_fd(const struct merge_plan *p, struct error *err)
{
    struct text_out *o = mem_alloc(sizeof *o);
    int fd = o ? memfd_create("manifest", MFD_CLOEXEC) : -1;
    if (fd < 0) {
        error_set(err, -MRD_ENOMEM, "out of memory");
    } else {
        out_init(o, fd);
        put_manifest(o, p);
        if (out_flush(o, err) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
            close(fd);
            fd = -1;
        }
    }
    mem_free(o);
    return fd;
}

/* --- the archive -------------------------------------------------------------------------------------------------- */

struct archive_out {
    struct libarchive lib;
    struct archive *a;
    const char *path;
};

static int write_failed(const struct archive_out *o, struct error *err)
{
    const char *why = o->lib.archive_error_string(o->a);
    return error_set(err, -MRD_EIO, "%s: %s", o->path, why ? why : "cannot write");
}

static int copy(const struct archive_out *o, int fd, int64_t size, const char *from, struct error *err)
{
    char *buf = mem_alloc(COPY_BYTES);
    int rc = buf ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    while (!rc && size > 0) {
        ssize_t n = read(fd, buf, size < COPY_BYTES ? (size_t)size : COPY_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            rc = n < 0 ? error_set_errno(err, errno, "%s", from)
                       : error_set(err, -MRD_EIO, "%s: it became shorter while it was read", from);
        else if (o->lib.archive_write_data(o->a, buf, (size_t)n) != n)
            rc = write_failed(o, err);
        size -= n;
    }
    mem_free(buf);
    return rc;
}

static int add_member(const struct archive_out *o, const char *name, int fd, const char *from, struct error *err)
{
    const struct libarchive *l = &o->lib;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return error_set_errno(err, errno, "%s", from);
    struct archive_entry *e = l->archive_entry_new();
    if (!e)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    l->archive_entry_set_pathname(e, name);
    l->archive_entry_set_size(e, st.st_size);
    l->archive_entry_set_filetype(e, AE_IFREG);
    l->archive_entry_set_perm(e, 0644);
    int rc = l->archive_write_header(o->a, e) == ARCHIVE_OK ? 0 : write_failed(o, err);
    l->archive_entry_free(e);
    return rc ? rc : copy(o, fd, st.st_size, from, err);
}

static int add_members(const struct archive_out *o, const struct merge_plan *p, struct error *err)
{
    int fd = manifest_fd(p, err);
    int rc = fd < 0 ? -MRD_ENOMEM : add_member(o, MERGE_MANIFEST, fd, "manifest", err);
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; i < p->files.n && !rc; i++) {
        fd = open(p->files.p[i].path, O_RDONLY | O_CLOEXEC);
        rc = add_member(o, p->files.p[i].member, fd, p->files.p[i].path, err);
        if (fd >= 0)
            close(fd);
    }
    return rc;
}

int merge_archive_write(const struct merge_plan *p, const char *path, struct error *err)
{
    struct archive_out o = {.path = path};
    int rc = libarchive_load(&o.lib, err);
    if (rc)
        return rc;
    o.a = o.lib.archive_write_new();
    if (!o.a)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    o.lib.archive_write_set_format_pax_restricted(o.a);
    rc = o.lib.archive_write_open_filename(o.a, path) == ARCHIVE_OK ? add_members(&o, p, err) : write_failed(&o, err);
    if (o.lib.archive_write_close(o.a) != ARCHIVE_OK && !rc)
        rc = write_failed(&o, err);
    o.lib.archive_write_free(o.a);
    return rc;
}
