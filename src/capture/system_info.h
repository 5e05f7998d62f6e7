/* What a trace says about the machine it was recorded on: SystemInfo of the service and of a relay. */
#ifndef MERIDIAN_CAPTURE_SYSTEM_INFO_H
#define MERIDIAN_CAPTURE_SYSTEM_INFO_H

#include "proto/pb_writer.h"

/* Appends the fields of a SystemInfo message (spec service 6) without machine_name. */
void system_info_put(struct pb_writer *w);

/* PERFETTO_MACHINE_NAME, else the kernel's name (uname -s). */
void system_info_machine_name(char *buf, size_t size);

#endif
