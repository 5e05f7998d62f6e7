/* Where the members of kernel structs lie, by the kernel's own description of its types (BTF, /sys/kernel/btf/vmlinux).
 *
 * Only what that takes: structs and unions with their members, anonymous ones entered; no other kind of type is looked
 * at. Format: linux/btf.h. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_BTF_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_BTF_H

#include "base/error.h"
#include "base/slice.h"

/* The byte offset of `member` in `struct type`. -MRD_EFORMAT for bytes that are no BTF of this byte order,
 * -MRD_ENOTFOUND without such a struct or member (a bit-field is none), -MRD_ENOMEM. */
int btf_member_offset(struct slice file, const char *type, const char *member, uint32_t *offset, struct error *err);

#endif
