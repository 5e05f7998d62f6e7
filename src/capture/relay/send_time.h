/* When a message really left: the kernel's note of the moment at which it gave a TCP segment to the device. */
#ifndef MERIDIAN_CAPTURE_RELAY_SEND_TIME_H
#define MERIDIAN_CAPTURE_RELAY_SEND_TIME_H

#include <stdint.h>

/* Asks for the time of what is sent on `fd` from now on, up to send_time_end(). */
void send_time_begin(int fd);

/* The CLOCK_REALTIME, in ns, at which the last of it left; 0 when the kernel has not told (yet, or it cannot: vsock,
 * old drivers, a full queue). */
uint64_t send_time_end(int fd);

#endif
