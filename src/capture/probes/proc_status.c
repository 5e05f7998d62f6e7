/* Reads the status of processes and threads. */
#include "capture/probes/proc_status.h"

#include "capture/probes/proc_text.h"
#include "wire/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct proc_memory_field proc_memory_fields[PROC_MEMORY_COUNT] = {
    [PROC_VM_SIZE] = {"VmSize", 2},
    [PROC_VM_RSS] = {"VmRSS", 3},
    [PROC_RSS_ANON] = {"RssAnon", 4},
    [PROC_RSS_FILE] = {"RssFile", 5},
    [PROC_RSS_SHMEM] = {"RssShmem", 6},
    [PROC_VM_SWAP] = {"VmSwap", 7},
    [PROC_VM_LOCKED] = {"VmLck", 8},
    [PROC_VM_HWM] = {"VmHWM", 9},
    [PROC_SMR_RSS] = {"Rss", 16},
    [PROC_SMR_PSS] = {"Pss", 17},
    [PROC_SMR_PSS_ANON] = {"Pss_Anon", 18},
    [PROC_SMR_PSS_FILE] = {"Pss_File", 19},
    [PROC_SMR_PSS_SHMEM] = {"Pss_Shmem", 20},
    [PROC_SMR_SWAP_PSS] = {"SwapPss", 23},
};

/* Counters [from, to) of a "Key:   N kB" line. */
static bool memory_line(struct proc_status *s, const char *key, char *value, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        if (strcmp(proc_memory_fields[i].key, key) != 0)
            continue;
        if (text_u64(&value, &s->memory_kb[i]))
            s->memory_present |= 1u << i;
        return true;
    }
    return false;
}

void proc_status_parse(char *text, struct proc_status *s)
{
    uint64_t v;
    memset(s, 0, sizeof *s);
    s->kthread = -1;
    for (char *line; (line = text_line(&text));) {
        char *value = strchr(line, ':');
        if (!value)
            continue;
        *value++ = 0;
        if (memory_line(s, line, value, PROC_VM_SIZE, PROC_SMR_RSS))
            continue;
        if (strcmp(line, "Name") == 0) {
            snprintf(s->name, sizeof s->name, "%s", text_trim(value));
        } else if (strcmp(line, "Tgid") == 0 && text_u64(&value, &v)) {
            s->tgid = (int32_t)v;
        } else if (strcmp(line, "Pid") == 0 && text_u64(&value, &v)) {
            s->pid = (int32_t)v;
        } else if (strcmp(line, "PPid") == 0 && text_u64(&value, &v)) {
            s->ppid = (int32_t)v;
        } else if (strcmp(line, "Uid") == 0 && text_u64(&value, &v)) {
            s->uid = (uint32_t)v;
        } else if (strcmp(line, "Kthread") == 0 && text_u64(&value, &v)) {
            s->kthread = v != 0;
        } else if (strcmp(line, "NSpid") == 0) {
            while (s->n_ns < PROC_MAX_NS && text_u64(&value, &v))
                s->ns_pid[s->n_ns++] = (int32_t)v;
        }
    }
}

bool proc_status_read(int32_t tid, struct proc_status *s)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/status", tid);
    if (text_read_once(path, text, sizeof text) <= 0)
        return false;
    proc_status_parse(text, s);
    return s->pid > 0 && s->tgid > 0;
}

void proc_status_add_smaps(int32_t pid, struct proc_status *s)
{
    char path[64], text[4096], *p = text;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    if (text_read_once(path, text, sizeof text) <= 0)
        return;
    for (char *line; (line = text_line(&p));) {
        char *value = strchr(line, ':');
        if (!value)
            continue;
        *value++ = 0;
        memory_line(s, line, value, PROC_SMR_RSS, PROC_MEMORY_COUNT);
    }
}

bool proc_times_parse(char *text, uint64_t ticks_per_second, struct proc_times *t)
{
    enum { UTIME = 14, STIME = 15, STARTTIME = 22 }; /* fields as proc(5) numbers them */
    char *p = strrchr(text, ')');                    /* the name may hold anything, also blanks and brackets */
    int found = 0;
    if (!p || !ticks_per_second)
        return false;
    p++;
    for (int field = 3; field <= STARTTIME; field++) {
        char *word = text_word(&p);
        if (!word)
            break;
        uint64_t ns = strtoull(word, NULL, 10) * 1000000000u / ticks_per_second;
        if (field == UTIME)
            t->user_ns = ns, found++;
        else if (field == STIME)
            t->kernel_ns = ns, found++;
        else if (field == STARTTIME)
            t->start_from_boot_ns = ns, found++;
    }
    return found == 3;
}

bool proc_times_read(int32_t pid, struct proc_times *t)
{
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return text_read_once(path, text, sizeof text) > 0 && proc_times_parse(text, (uint64_t)sysconf(_SC_CLK_TCK), t);
}

bool proc_put_cmdline(struct pb_writer *w, int32_t pid)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int len = text_read_once(path, text, sizeof text);
    for (int at = 0; at < len;) { /* arguments end with NUL; a process that changed its title may have none */
        size_t n = strnlen(text + at, (size_t)(len - at));
        pb_put_bytes(w, PROCESS_TREE_PROCESS_CMDLINE, text + at, n);
        at += (int)n + 1;
    }
    return len > 0;
}

const char *proc_cgroup_parse(char *text)
{
    const char *best = "", *named = NULL;
    for (char *line; (line = text_line(&text));) { /* number:controllers:path; the path may hold colons */
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/')
            continue;
        *path++ = 0;
        if (strcmp(line, "0:") == 0 && path[1])
            return path;
        if (strcmp(controllers, ":name=systemd") == 0 && path[1])
            named = path;
        if (strlen(path) > strlen(best))
            best = path;
    }
    return named ? named : best;
}

bool proc_oom_score_adj(int32_t pid, int64_t *value)
{
    char path[64], text[32], *end;
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
    if (text_read_once(path, text, sizeof text) <= 0)
        return false;
    *value = strtoll(text, &end, 10);
    return end != text;
}
