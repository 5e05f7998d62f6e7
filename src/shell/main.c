/* tp_shell's entry. */
#include "shell/shell.h"

#include <malloc.h>

int main(int argc, char **argv)
{
    /* A load makes the heap grow by hundreds of megabytes in small pieces: asking the kernel for more at a time, and
     * giving back less eagerly, saves thousands of system calls and a twentieth of the time of a long load. */
    mallopt(M_TOP_PAD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    return shell_main(argc, argv);
}
