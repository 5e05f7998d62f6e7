/* What this machine is: its SystemInfo, its name, and the hint by which a host knows it again. */
#ifndef MERIDIAN_CAPTURE_COMMON_MACHINE_H
#define MERIDIAN_CAPTURE_COMMON_MACHINE_H

#include "wire/pb_writer.h"

enum { MACHINE_TEXT_MAX = 128 };

/* The machine's name: PERFETTO_MACHINE_NAME, else `uname -s`. */
void machine_name(char *buf, size_t size);

/* A name for readers: `name`, or the host's where that is only the default. The trace carries it. */
void machine_display_name(const char *name, char *buf, size_t size);

/* The same for every process until this kernel goes down: boot_id, else a hash of when /dev was made and of uname, else
 * "". */
void machine_id_hint(char *buf, size_t size);

/* The id that a host gives to a hint: the low half of FNV-1a 64, never 0. */
uint32_t machine_id_of_hint(const char *hint, size_t len);

/* Appends the fields of SystemInfo (without machine_name) to the message that is open in w. */
void machine_put_system_info(struct pb_writer *w);

/* As tracing_service_version, InitializeConnection.sdk_version and --version tell it. */
extern const char machine_software_version[];

#endif
