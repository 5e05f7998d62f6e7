/* libarchive, loaded when an archive is first read or written: most runs of a program meet none, and it would take an
 * eighth of the time that each one starts in, as it brings libxml2, ICU and the library of C++. */
#ifndef MERIDIAN_BASE_LIBARCHIVE_H
#define MERIDIAN_BASE_LIBARCHIVE_H

#include "base/error.h"

#include <archive.h>
#include <archive_entry.h>

/* What is used of it. */
#define LIBARCHIVE_FUNCTIONS(X)                                                                                        \
    X(archive_error_string)                                                                                            \
    X(archive_filter_bytes)                                                                                            \
    X(archive_set_error)                                                                                               \
    X(archive_read_new)                                                                                                \
    X(archive_read_support_format_zip)                                                                                 \
    X(archive_read_support_format_tar)                                                                                 \
    X(archive_read_support_format_gnutar)                                                                              \
    X(archive_read_open_memory)                                                                                        \
    X(archive_read_next_header)                                                                                        \
    X(archive_read_data)                                                                                               \
    X(archive_read_free)                                                                                               \
    X(archive_write_new)                                                                                               \
    X(archive_write_set_format_pax_restricted)                                                                         \
    X(archive_write_set_bytes_in_last_block)                                                                           \
    X(archive_write_open)                                                                                              \
    X(archive_write_open_filename)                                                                                     \
    X(archive_write_header)                                                                                            \
    X(archive_write_data)                                                                                              \
    X(archive_write_close)                                                                                             \
    X(archive_write_fail)                                                                                              \
    X(archive_write_free)                                                                                              \
    X(archive_entry_new)                                                                                               \
    X(archive_entry_free)                                                                                              \
    X(archive_entry_pathname)                                                                                          \
    X(archive_entry_filetype)                                                                                          \
    X(archive_entry_set_pathname)                                                                                      \
    X(archive_entry_set_size)                                                                                          \
    X(archive_entry_set_filetype)                                                                                      \
    X(archive_entry_set_perm)                                                                                          \
    X(archive_entry_set_uname)                                                                                         \
    X(archive_entry_set_gname)

struct libarchive {
#define X(name) __typeof__(name) *name;
    LIBARCHIVE_FUNCTIONS(X)
#undef X
};

/* Fills *l; the library stays loaded until the process ends. -MRD_ENOTFOUND when this machine does not have it. */
int libarchive_load(struct libarchive *l, struct error *err);

#endif
