/* Refuses every system call but those that computing takes. */
#include "base/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

/* What the C library's memory, clocks and open files need. */
static const int allowed[] = {
    SYS_read,         SYS_pread64,     SYS_write,       SYS_lseek,        SYS_close,
    SYS_fstat,        SYS_newfstatat, /* which newer C libraries call for fstat() */
    SYS_fcntl,        SYS_mmap,        SYS_munmap,      SYS_mremap,       SYS_mprotect,
    SYS_madvise,      SYS_brk,         SYS_futex,       SYS_getrandom,    SYS_clock_gettime,
    SYS_gettid,       SYS_getpid,      SYS_sched_yield, SYS_rt_sigaction, SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_sigaltstack, SYS_exit,        SYS_exit_group,
};

#ifdef OUR_ARCH
int sandbox_only_compute(struct error *err)
{
    enum { N = sizeof allowed / sizeof *allowed, AROUND = 6 };
    struct sock_filter code[N + AROUND];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS); /* other numbers than above */
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < N; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (uint8_t)(N - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return error_set_errno(err, errno, "giving up new privileges");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0 && errno != ENOSYS && errno != EINVAL)
        return error_set_errno(err, errno, "refusing system calls"); /* those: a kernel without it */
    return 0;
}
#else
int sandbox_only_compute(struct error *err)
{
    (void)err;
    (void)allowed;
    return 0;
}
#endif
