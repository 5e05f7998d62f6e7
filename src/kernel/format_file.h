/* Parses the text that tracefs gives about events: `events/GROUP/NAME/format` and `events/header_page`.
 *
 * The text comes from a kernel, but nothing here relies on that: a line that does not parse, a field that lies outside
 * any event, or too many fields make the whole file an error, so that one bad event cannot harm another. */
#ifndef MERIDIAN_KERNEL_FORMAT_FILE_H
#define MERIDIAN_KERNEL_FORMAT_FILE_H

#include "base/error.h"
#include "base/slice.h"

enum {
    FORMAT_MAX_FIELDS = 128,    /* more than any kernel event has */
    FORMAT_MAX_OFFSET = 0xffff, /* a sub-buffer holds at most 64 KiB */
};

struct format_field {
    struct slice type; /* "unsigned long", "__data_loc char[]", without the name; views into the text */
    struct slice name;
    uint32_t offset;
    uint32_t size;  /* bytes in the fixed part of the event; 0 for a C array that ends the event */
    uint32_t count; /* elements of a C array with a number in brackets, else 0 */
    bool is_array;  /* name[...] */
    bool is_signed;
};

struct format_file {
    struct slice name;
    uint32_t id;
    size_t n_common; /* the first fields: common_type, common_flags, common_preempt_count, common_pid */
    size_t n_fields; /* with the common ones */
    struct format_field fields[FORMAT_MAX_FIELDS];
};

/* Parses a `format` file; the views in `f` last as long as `text`. -MRD_EFORMAT when it is not one or lies: no name or
 * ID, a field beyond FORMAT_MAX_OFFSET, two fields that overlap, too many fields. */
int format_file_parse(struct format_file *f, struct slice text, struct error *err);

const struct format_field *format_file_field(const struct format_file *f, const char *name);

struct page_format {
    uint32_t commit_size; /* of the commit word: 8 on 64-bit kernels, 4 on 32-bit ones */
    uint32_t data_offset; /* where the events begin */
};

/* Parses `events/header_page`. */
int page_format_parse(struct page_format *f, struct slice text, struct error *err);

#endif
