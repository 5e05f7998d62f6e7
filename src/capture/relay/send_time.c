/* Software transmit timestamps. */
#include "capture/relay/send_time.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* these want struct timespec */
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>

static void set_flags(int fd, int flags)
{
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags);
}

void send_time_begin(int fd)
{
    set_flags(fd, SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY);
}

uint64_t send_time_end(int fd)
{
    union {
        struct cmsghdr align;
        char buf[512];
    } control;
    struct msghdr m;
    uint64_t ns = 0;
    for (;;) { /* to the end: what stays in the queue would wake the loop as an error of the socket */
        m = (struct msghdr){.msg_control = control.buf, .msg_controllen = sizeof control.buf};
        if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0 || !(m.msg_flags & MSG_ERRQUEUE))
            break; /* families without such a queue take the call for an ordinary one */
        for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
            struct scm_timestamping t;
            if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_TIMESTAMPING)
                continue;
            memcpy(&t, CMSG_DATA(h), sizeof t);
            ns = (uint64_t)t.ts[0].tv_sec * 1000000000u + (uint64_t)t.ts[0].tv_nsec;
        }
    }
    set_flags(fd, 0);
    return ns;
}
