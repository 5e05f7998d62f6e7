/* Names without the numbers that differ from run to run: worker-1 and worker-2 are worker-*. */
#ifndef MERIDIAN_COMPARE_GROUP_NAME_H
#define MERIDIAN_COMPARE_GROUP_NAME_H

#include <stddef.h>

/* Writes `name` (NULL: "") to `to`, cut where `room` ends: digits behind one of -:/_#. or a blank, or behind such a
 * separator and the letter u (kworker/u8:1), become one '*'; controls become '?'. Returns `to`. */
const char *group_name(const char *name, char *to, size_t room);

/* The same of the path of a control group, where twelve hexadecimal digits and more (a container's id) are one '*',
 * too, and a UUID, with dashes or as systemd has it with '_'. */
const char *cgroup_group_name(const char *path, char *to, size_t room);

#endif
