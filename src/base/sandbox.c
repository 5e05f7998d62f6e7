/* Drops capabilities and refuses system calls. */
#include "base/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
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

enum { CAPABILITIES = 64, X32_BIT = 0x40000000 };

static int drop_capabilities(uint64_t keep, struct error *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &head, data) != 0)
        return error_set_errno(err, errno, "reading the capabilities");
    for (unsigned i = 0; i < CAPABILITIES; i++) /* of what is not there or not ours to drop there is nothing to lose */
        if (!(keep >> i & 1))
            (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t mask = (uint32_t)(keep >> (32 * i));
        data[i].permitted &= mask;
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    if (syscall(SYS_capset, &head, data) != 0)
        return error_set_errno(err, errno, "dropping capabilities");
    return 0;
}

/* What none of our daemons does. A list of what they do would be a list of what every version of the C library does,
 * and end the recording where it is not complete. */
static const int refused[] = {
    SYS_execve,
    SYS_execveat,
#if !defined(__SANITIZE_ADDRESS__) /* LeakSanitizer looks at its own threads */
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
#ifdef SYS_open_tree
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsmount,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_personality,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_mknodat,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
#if defined(__x86_64__)
    SYS_mknod,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
#endif
};

#ifdef OUR_ARCH
enum { N_REFUSED = sizeof refused / sizeof *refused, AROUND = 7 };

/* A daemon that keeps CAP_PERFMON opens perf events. */
static bool needed(int call, uint64_t keep)
{
    return call == SYS_perf_event_open && (keep & SANDBOX_CAP(CAP_PERFMON));
}

static int filter_calls(uint64_t keep, struct error *err)
{
    struct sock_filter code[N_REFUSED + AROUND];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS); /* other numbers than below */
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, N_REFUSED + 1, 0);
    for (unsigned i = 0; i < N_REFUSED; i++) {
        uint8_t refuse = needed(refused[i], keep) ? 0 : (uint8_t)(N_REFUSED - i);
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], refuse, 0);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {.len = n, .filter = code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0 && errno != ENOSYS &&
        errno != EINVAL) /* those: a kernel without it */
        return error_set_errno(err, errno, "refusing system calls");
    return 0;
}
#else
static int filter_calls(uint64_t keep, struct error *err)
{
    (void)keep;
    (void)err;
    (void)refused;
    return 0;
}
#endif

int sandbox_enter(uint64_t keep, struct error *err)
{
    int rc = drop_capabilities(keep, err);
    if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        rc = error_set_errno(err, errno, "giving up new privileges");
    return rc ? rc : filter_calls(keep, err);
}
