/* Slices into packets, packets into the file. */
#include "capture/client/trace_output.h"

#include "base/file.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int trace_output_open(struct trace_output *o, const char *path, bool no_clobber, struct error *err)
{
    if (strcmp(path, "-") == 0) {
        o->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        return o->fd < 0 ? error_set_errno(err, errno, "standard output") : 0;
    }
    int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | (no_clobber ? O_EXCL : 0);
    o->fd = open(path, flags, 0600);
    if (o->fd < 0)
        return error_set_errno(err, errno, "cannot open %s", path);
    snprintf(o->path, sizeof o->path, "%s", path);
    return 0;
}

static void add_slice(struct trace_output *o, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct slice data = {0};
    bool last = false;
    while (pb_next(&c, &f)) {
        if (f.id == READ_BUFFERS_RESPONSE_SLICE_DATA)
            data = pb_bytes(&f);
        else if (f.id == READ_BUFFERS_RESPONSE_SLICE_LAST_SLICE_FOR_PACKET)
            last = pb_bool(&f);
    }
    if (last && !o->packet.n) {
        pb_put_bytes(&o->out, TRACE_PACKET, data.p, data.len);
        return;
    }
    pb_put_raw(&o->packet, data.p, data.len);
    if (last) {
        pb_put_bytes(&o->out, TRACE_PACKET, o->packet.p, o->packet.n);
        pb_writer_clear(&o->packet);
    }
    o->out.failed |= o->packet.failed;
}

int trace_output_add(struct trace_output *o, struct slice response, struct error *err)
{
    struct pb_cursor c = pb_cursor(response);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == READ_BUFFERS_RESPONSE_SLICES)
            add_slice(o, pb_bytes(&f));
    int rc =
        o->out.failed ? error_set(err, -MRD_ENOMEM, "out of memory") : file_write_all(o->fd, o->out.p, o->out.n, err);
    if (!rc)
        o->written += o->out.n;
    pb_writer_clear(&o->out);
    return rc;
}

void trace_output_close(struct trace_output *o, bool service_wrote, bool whole)
{
    struct stat st;
    pb_writer_free(&o->packet);
    pb_writer_free(&o->out);
    if (o->fd < 0)
        return;
    bool is_file = fstat(o->fd, &st) == 0 && S_ISREG(st.st_mode); /* and no device: /dev/null stays */
    if (service_wrote && is_file)
        o->written = (uint64_t)st.st_size;
    close(o->fd);
    o->fd = -1;
    if (o->written == 0 && o->path[0] && is_file)
        unlink(o->path); /* nothing came: leave nothing behind */
    else
        fprintf(stderr, "Wrote %llu bytes into %s%s\n", (unsigned long long)o->written, o->path[0] ? o->path : "stdout",
                whole ? "" : "; the trace is incomplete");
}
