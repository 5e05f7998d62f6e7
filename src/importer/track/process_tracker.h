/* Threads and processes of one machine: which utid a tid means at a time.
 *
 * utid and upid are row numbers of `thread` and `process`. A tid has several utids over time; the latest that is alive
 * counts. */
#ifndef MERIDIAN_IMPORTER_TRACK_PROCESS_TRACKER_H
#define MERIDIAN_IMPORTER_TRACK_PROCESS_TRACKER_H

#include "importer/core/context.h"

#define UTID_NONE UINT32_MAX
#define UPID_NONE UINT32_MAX

/* A name set with a priority replaces one of the same or a lower priority. */
enum thread_name_priority {
    THREAD_NAME_OTHER,
    THREAD_NAME_FTRACE,
    THREAD_NAME_PROCESS_TREE,
    THREAD_NAME_TRACK_DESCRIPTOR_THREAD_TYPE,
    THREAD_NAME_TRACK_DESCRIPTOR,
    THREAD_NAME_CONSTANT,
};
enum process_name_priority {
    PROCESS_NAME_OTHER,
    PROCESS_NAME_CHROME_LABEL,
    PROCESS_NAME_TRACK_DESCRIPTOR,
    PROCESS_NAME_RENDERER_LABEL,
    PROCESS_NAME_SYSTEM,
};

/* Makes the tracker of a machine, with the idle thread and process (tid 0, "swapper"). NULL when out of memory. */
struct process_tracker *process_tracker_open(struct machine_ctx *m);
void process_tracker_close(struct process_tracker *t);
/* Resolves what was waiting (pending associations, exits) once no more events come. */
void process_tracker_finish(struct process_tracker *t);

/* The latest alive utid of a tid, made when there is none. A hit is one hash probe (a small direct table for low tids).
 */
uint32_t process_tracker_thread(struct process_tracker *t, int64_t tid);
/* The same, named by a kernel event (THREAD_NAME_FTRACE). */
uint32_t process_tracker_named_thread(struct process_tracker *t, int64_t tid, strid name);
/* As above without making one: UTID_NONE. */
uint32_t process_tracker_find_thread(const struct process_tracker *t, int64_t tid);
uint32_t process_tracker_process(struct process_tracker *t, int64_t pid);
uint32_t process_tracker_find_process(const struct process_tracker *t, int64_t pid);

/* A new process whose pid nobody knows. UPID_NONE when out of memory. */
uint32_t process_tracker_process_without_pid(struct process_tracker *t);

/* The thread `tid` of process `pid` (both made when new); associates them. */
uint32_t process_tracker_update_thread(struct process_tracker *t, int64_t tid, int64_t pid);

/* Changes whenever a thread or process begins, ends or is told which it belongs to: as long as it stays what it is, the
 * same tid and pid mean the same thread. Stays where it is as long as the tracker. */
const uint32_t *process_tracker_epoch(const struct process_tracker *t);

/* The thread `tid` of an ordinary process whose pid is 0: for files where that is not the idle one. */
uint32_t process_tracker_zero_thread(struct process_tracker *t, int64_t tid);

/* As above; the main thread of the process comes into being too, before a thread that moves to another process. */
uint32_t process_tracker_update_thread_and_main(struct process_tracker *t, int64_t tid, int64_t pid);

/* task_newtask: a new thread in the parent's process, or a new process (clone flags decide in the caller). ts COL_NULL
 * when unknown; parent_tid negative when unknown. Return the new utid. */
uint32_t process_tracker_start_thread(struct process_tracker *t, int64_t ts, int64_t tid);
uint32_t process_tracker_start_process(struct process_tracker *t, int64_t ts, int64_t parent_tid, int64_t pid,
                                       strid main_name, enum thread_name_priority priority);
void process_tracker_end_thread(struct process_tracker *t, int64_t ts, int64_t tid);
/* As above, for the kernel's word that a thread is gone (sched_process_free): a trace that has it does not need exits.
 */
void process_tracker_free_thread(struct process_tracker *t, int64_t ts, int64_t tid);
/* sched_process_exit: the thread's last act; it runs on for a moment. Where nothing in the trace tells when threads are
 * gone, these are their ends, and a process ends with the last of its threads. */
void process_tracker_exit_thread(struct process_tracker *t, int64_t ts, int64_t tid);
/* Puts `utid` into the process of `other_utid`, now or when that becomes known. */
void process_tracker_associate_threads(struct process_tracker *t, uint32_t utid, uint32_t other_utid);

void process_tracker_thread_name(struct process_tracker *t, uint32_t utid, strid name,
                                 enum thread_name_priority priority);
void process_tracker_process_name(struct process_tracker *t, uint32_t upid, strid name,
                                  enum process_name_priority priority);
/* process_tree: creates the process and its parent, sets name, cmdline, uid. Returns the upid. */
uint32_t process_tracker_set_metadata(struct process_tracker *t, int64_t pid, int64_t ppid, strid name, strid cmdline);
/* As above for sources that list main threads themselves: none is made. */
uint32_t process_tracker_set_metadata_alone(struct process_tracker *t, int64_t pid, int64_t ppid, strid name,
                                            strid cmdline);
void process_tracker_set_uid(struct process_tracker *t, uint32_t upid, uint32_t uid);
void process_tracker_set_start_ts(struct process_tracker *t, uint32_t upid, int64_t ts);

/* The process of a thread, UPID_NONE while unknown. */
uint32_t process_tracker_thread_process(const struct process_tracker *t, uint32_t utid);
/* Gives the process the name of `utid` if that is its main thread (task_rename). */
void process_tracker_main_thread_name(struct process_tracker *t, uint32_t utid, strid name);
/* The pid is used by another process from now on. ts COL_NULL when unknown. Returns the new upid. */
uint32_t process_tracker_restart_process(struct process_tracker *t, int64_t ts, int64_t pid);

/* Pid namespaces: what process_tree knows of numbers inside them (`inner`, of the innermost namespace, `level` levels
 * down). The second returns false when the process was not announced. */
void process_tracker_set_namespaced_process(struct process_tracker *t, int64_t pid, int64_t inner_pid, uint32_t level);
bool process_tracker_set_namespaced_thread(struct process_tracker *t, int64_t pid, int64_t tid, int64_t inner_tid,
                                           uint32_t level);
/* The root-level tid of a tid as the process `root_pid` sees it; -1 when it is not known. */
int64_t process_tracker_resolve_namespaced(const struct process_tracker *t, int64_t root_pid, int64_t tid);

/* From now on tid 0 is a thread like others: for traces in which nothing is idle. */
void process_tracker_without_idle(struct process_tracker *t);

/* Makes it the tracker of another machine, with its idle thread, which is all that it may have. */
void process_tracker_move(struct process_tracker *t, struct machine_ctx *to);

/* The idle thread of this machine. Also what the functions above return when memory runs out. */
uint32_t process_tracker_idle_utid(const struct process_tracker *t);

#endif
