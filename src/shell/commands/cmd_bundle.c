/* tp_shell bundle: a trace and the names that belong to it in one archive, which is opened like a trace. */
#include "base/file.h"
#include "base/libarchive.h"
#include "base/output_file.h"
#include "shell/commands/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 256 << 10 };

struct bundle {
    const char *in, *out;
    int fd; /* of `in` */
    struct stat st;
    struct pb_writer symbols, maps;
    size_t n_maps;
    struct symbol_report report;
    struct libarchive lib;
};

/* --- the archive -------------------------------------------------------------------------------------------------- */

struct archive_out {
    const struct libarchive *lib;
    struct output_file file;
    struct error *err;
    int rc;
};

static la_ssize_t write_out(struct archive *a, void *ctx, const void *bytes, size_t n)
{
    struct archive_out *o = ctx;
    o->rc = output_file_write(&o->file, bytes, n, o->err);
    if (o->rc == 0)
        return (la_ssize_t)n;
    o->lib->archive_set_error(a, EIO, "%s", o->err->text);
    return -1;
}

static int begin_member(const struct libarchive *l, struct archive *a, const char *name, int64_t size)
{
    struct archive_entry *e = l->archive_entry_new();
    if (!e)
        return ARCHIVE_FATAL;
    l->archive_entry_set_pathname(e, name);
    l->archive_entry_set_size(e, size);
    l->archive_entry_set_filetype(e, AE_IFREG);
    l->archive_entry_set_perm(e, 0644);
    l->archive_entry_set_uname(e, "root");
    l->archive_entry_set_gname(e, "root");
    int rc = l->archive_write_header(a, e);
    l->archive_entry_free(e);
    return rc;
}

static int failed(struct archive *a, const struct bundle *b, struct error *err)
{
    const char *why = b->lib.archive_error_string(a);
    return err->code ? err->code : error_set(err, -MRD_EIO, "%s: %s", b->out, why ? why : "cannot write");
}

/* The trace byte for byte, whatever its format. */
static int add_trace(struct archive *a, const struct bundle *b, struct error *err)
{
    char *buf = mem_alloc(COPY_BYTES);
    if (!buf)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = begin_member(&b->lib, a, "trace.perfetto", b->st.st_size) == ARCHIVE_OK ? 0 : failed(a, b, err);
    for (int64_t left = b->st.st_size; rc == 0 && left > 0;) {
        ssize_t n = file_read(b->fd, buf, left < COPY_BYTES ? (size_t)left : COPY_BYTES);
        if (n <= 0)
            rc = n < 0 ? error_set_errno(err, errno, "%s", b->in)
                       : error_set(err, -MRD_EIO, "%s: it became shorter while it was read", b->in);
        else if (b->lib.archive_write_data(a, buf, (size_t)n) != n)
            rc = failed(a, b, err);
        left -= n > 0 ? n : 0;
    }
    mem_free(buf);
    return rc;
}

static int add_packets(struct archive *a, const char *name, const struct pb_writer *w, const struct bundle *b,
                       struct error *err)
{
    if (!w->n)
        return 0;
    bool written = begin_member(&b->lib, a, name, (int64_t)w->n) == ARCHIVE_OK &&
                   b->lib.archive_write_data(a, w->p, w->n) == (la_ssize_t)w->n;
    return written ? 0 : failed(a, b, err);
}

static int write_archive(const struct bundle *b, struct error *err)
{
    const struct libarchive *l = &b->lib;
    struct archive_out o = {.lib = l, .err = err};
    struct archive *a = l->archive_write_new();
    if (!a)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    l->archive_write_set_format_pax_restricted(a); /* plain ustar, but for what does not fit */
    l->archive_write_set_bytes_in_last_block(a, 1);
    int rc = output_file_open(&o.file, b->out, err);
    if (rc < 0) {
        l->archive_write_free(a);
        return rc;
    }
    if (l->archive_write_open(a, &o, NULL, write_out, NULL) != ARCHIVE_OK)
        rc = failed(a, b, err);
    if (rc == 0)
        rc = add_trace(a, b, err);
    if (rc == 0)
        rc = add_packets(a, "symbols.pb", &b->symbols, b, err);
    if (rc == 0)
        rc = add_packets(a, "deobfuscation.pb", &b->maps, b, err);
    if (rc == 0 && l->archive_write_close(a) != ARCHIVE_OK)
        rc = failed(a, b, err);
    if (rc < 0)
        l->archive_write_fail(a);
    l->archive_write_free(a);
    return output_file_close(&o.file, rc, err);
}

/* --- what it is made of ------------------------------------------------------------------------------------------- */

static int check_paths(struct bundle *b, struct error *err)
{
    struct stat link;
    if (strcmp(b->in, "-") == 0 || strcmp(b->out, "-") == 0)
        return error_set(err, -MRD_EINVALID, "bundle: give the names of files: '-' is none");
    b->fd = open(b->in, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (b->fd < 0 && errno == ENOENT && lstat(b->in, &link) == 0)
        return error_set(err, -MRD_ENOTFOUND, "%s: the file that this link leads to does not exist", b->in);
    if (b->fd < 0)
        return error_set_errno(err, errno, "%s", b->in);
    if (fstat(b->fd, &b->st) != 0)
        return error_set_errno(err, errno, "%s", b->in);
    if (!S_ISREG(b->st.st_mode))
        return error_set(err, -MRD_EINVALID, "%s: %s; a bundle is made of one file", b->in,
                         S_ISDIR(b->st.st_mode) ? "it is a directory" : "it is no regular file");
    if (stat(b->out, &link) == 0 && S_ISDIR(link.st_mode))
        return error_set(err, -MRD_EINVALID, "%s: it is a directory: give the name of the archive", b->out);
    if (stat(b->out, &link) == 0 && link.st_dev == b->st.st_dev && link.st_ino == b->st.st_ino)
        return error_set(err, -MRD_EINVALID, "%s: the archive would replace the trace; give another name", b->out);
    return 0;
}

static int find_names(struct shell *sh, struct bundle *b, struct error *err)
{
    struct symbol_places places = {0};
    int rc = util_symbol_places(sh, &places, err);
    if (rc == 0 && !places.sources.breakpad) /* what belongs to this machine comes behind what was named */
        places.sources.this_machine = !sh->opt.no_auto_symbol_paths;
    bool anywhere =
        places.sources.n_paths || places.sources.this_machine || places.sources.breakpad || places.sources.debuginfod;
    if (rc == 0 && anywhere)
        rc = util_check_places(&places, err);
    if (rc == 0 && anywhere)
        rc = trace_symbols_find(sh->tp, &places.sources, &b->symbols, &b->report, err);
    if (rc == 0 && anywhere)
        util_tell_symbols(&b->report, sh->opt.verbose);
    else if (rc == 0)
        fprintf(stderr, "Symbols: none were looked for (--symbol-paths says where they are)\n");
    if (rc == 0)
        rc = util_proguard_packets(sh, !sh->opt.no_auto_proguard_maps, true, &b->maps, &b->n_maps, err);
    if (rc == 0 && b->n_maps)
        fprintf(stderr, "Longer names: %zu map%s\n", b->n_maps, b->n_maps == 1 ? "" : "s");
    symbol_places_free(&places);
    return rc;
}

int cmd_bundle(struct shell *sh, struct error *err)
{
    const struct text_list *args = &sh->opt.positionals;
    struct bundle b = {.fd = -1};
    if (args->n != (sh->opt.output ? 1 : 2))
        return error_set(err, -MRD_EINVALID,
                         "bundle: give the trace and the archive to write (several places for symbols are one list: "
                         "--symbol-paths A,B)");
    b.in = args->p[0];
    b.out = sh->opt.output ? sh->opt.output : args->p[1];
    int rc = check_paths(&b, err);
    if (rc == 0)
        rc = libarchive_load(&b.lib, err);
    if (rc == 0) {
        sh->no_health_report = sh->names_functions_itself = true;
        rc = session_load(sh, &b.in, 1, err);
    }
    if (rc == 0)
        rc = find_names(sh, &b, err);
    if (rc == 0)
        rc = write_archive(&b, err);
    if (rc == 0)
        printf("Wrote %s.\n", b.out);
    if (b.fd >= 0)
        close(b.fd);
    symbol_report_free(&b.report);
    pb_writer_free(&b.symbols);
    pb_writer_free(&b.maps);
    return rc;
}
