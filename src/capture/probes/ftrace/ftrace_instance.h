/* One tracefs instance in use: several sessions share its events, its buffers and its readers.
 *
 * The first session sets the instance up (clock, buffer size, no foreign events), the last one leaves it as it was
 * found; all changes go through the undo log. Tracing is on as long as one session is started. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_INSTANCE_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_INSTANCE_H

#include "capture/probes/ftrace/event_set.h"
#include "capture/probes/ftrace/ring_reader.h"
#include "capture/probes/ftrace/undo_log.h"

struct ftrace_session;

struct ftrace_instance {
    struct tracefs fs;
    struct undo_log undo;
    struct event_set events;
    struct printk_formats printk;
    struct page_format page_format;
    size_t page_size;
    uint32_t n_cpus;
    struct ring_reader *readers; /* [n_cpus], while a session is started */
    enum ring_mode mode;
    enum ftrace_clock clock;
    uint32_t n_sessions, n_started;
    bool preserved;         /* set up for preserve_ftrace_buffer */
    bool frozen;            /* read as it is: nothing is written to its files */
    const char *exclusive;  /* the setting of the one session that may use the instance; NULL: none */
    uint32_t buffer_pages;  /* per cpu, as the kernel has it now */
    uint32_t request_pages; /* as the first session asked */
    VEC(struct ftrace_session *)
    started;
    VEC(const struct event_selection *)
    selections; /* of all sessions */
    char name[256];
};

struct ftrace_instance_options {
    const char *tracefs_root;  /* NULL: where it is mounted */
    const char *run_directory; /* of undo logs */
    enum ring_mode mode;
    uint32_t *next_dynamic_id;
    bool must_exist; /* the instance is somebody else's: it is not made */
};

/* Finds tracefs and locks the instance; changes nothing but making the instance's directory. What a crashed recorder
 * left behind is taken back first; *recovered tells. */
int ftrace_instance_open(struct ftrace_instance *in, const char *name, const struct ftrace_instance_options *options,
                         bool *recovered, struct error *err);

/* Whether somebody else records in an instance that no session is set up in: tracing is on and events are enabled.
 * `who` gets the first of them. */
bool ftrace_instance_is_foreign(const struct ftrace_instance *in, char *who, size_t size);

/* Takes everything back and closes. */
int ftrace_instance_close(struct ftrace_instance *in, struct error *err);

/* Brings a session in: chooses its events, sets the kernel up if it is the first, enables the events. `config` and
 * `sel` stay where they are until the session is removed. On failure nothing of the session is left; -MRD_EEXISTS: the
 * instance's other sessions do not go together with it. */
int ftrace_instance_add(struct ftrace_instance *in, const struct ftrace_config *config, struct event_selection *sel,
                        struct error *err);

/* Lets its events go. With the last session the instance is to be closed, which takes everything back. */
void ftrace_instance_remove(struct ftrace_instance *in, struct event_selection *sel);

/* Opens the readers and switches tracing on, if this is the first started session; the opposite. Stopping leaves what
 * is in the buffers unread: drain first. */
int ftrace_instance_start(struct ftrace_instance *in, struct error *err);
void ftrace_instance_stop(struct ftrace_instance *in);

/* The kernel writes nothing more into the buffers. */
void ftrace_instance_pause(struct ftrace_instance *in);

/* Whether poll() on the readers says that a buffer is filled to buffer_percent. */
bool ftrace_instance_can_poll(const struct ftrace_instance *in);

/* The difference between the instance's clock and the boot clock now: both read together. */
void ftrace_instance_clock_pair(struct ftrace_instance *in, int64_t *ftrace_now, int64_t *boot_now);

/* Takes back what crashed recorders have left in `run_directory`. Returns how many there were; `err` has the first
 * thing that could not be taken back. */
int ftrace_recover_all(const char *tracefs_root, const char *run_directory, struct error *err);

/* --reset-ftrace: takes back what crashed recorders left, then switches tracing and all events off in the top instance,
 * and shrinks its buffer. */
int ftrace_reset(const char *tracefs_root, const char *run_directory, struct error *err);

#endif
