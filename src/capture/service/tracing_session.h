/* Sessions, and the consumers that own them: states, data source instances, buffers, flushes, what is read out. */
#ifndef MERIDIAN_CAPTURE_SERVICE_TRACING_SESSION_H
#define MERIDIAN_CAPTURE_SERVICE_TRACING_SESSION_H

#include "base/log.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/ipc/host.h"
#include "capture/service/batch.h"
#include "capture/service/clock_snapshot.h"
#include "capture/service/file_writer.h"
#include "capture/service/problems.h"
#include "capture/service/relay.h"
#include "capture/service/session_ring.h"
#include "schema/service.pb-c.h"
#include "wire/pb_cursor.h"

enum session_state { SESSION_DISABLED, SESSION_CONFIGURED, SESSION_STARTED, SESSION_STOPPING, SESSION_CLONED };
enum instance_state { INSTANCE_CONFIGURED, INSTANCE_STARTING, INSTANCE_STARTED, INSTANCE_STOPPING, INSTANCE_STOPPED };

/* TracingServiceEvent fields that are kept per session. */
enum lifecycle {
    LIFECYCLE_ALL_STARTED = 1,
    LIFECYCLE_TRACING_STARTED = 2,
    LIFECYCLE_ALL_FLUSHED = 3,
    LIFECYCLE_READ_COMPLETED = 4,
    LIFECYCLE_TRACING_DISABLED = 5,
    LIFECYCLE_SEIZED_FOR_BUGREPORT = 6,
    LIFECYCLE_SLOW_STARTING = 7,
    LIFECYCLE_LAST_FLUSH_SLOW = 8,
    LIFECYCLE_FLUSH_STARTED = 9,
    LIFECYCLE_CLONE_STARTED = 10,
    LIFECYCLE_BUFFER_CLONED = 11, /* with the buffer's index */
};

enum session_timer {
    TIMER_DURATION,
    TIMER_SNAPSHOT,
    TIMER_FILE,
    TIMER_FLUSH,
    TIMER_CLEAR,
    TIMER_STOP,    /* data sources that do not acknowledge their stop */
    TIMER_START,   /* … their start */
    TIMER_TRIGGER, /* no trigger came */
    TIMER_COUNT
};

struct registered_source;
struct service;
struct service_consumer;
struct service_producer;
struct session;

struct instance {
    uint64_t id;
    struct service_producer *producer;
    enum instance_state state;
    unsigned source; /* index in the session's config */
    char *name;
    bool will_notify_on_start, will_notify_on_stop, handles_clear, no_flush;
    uint8_t *config; /* serialized DataSourceConfig as the producer gets it */
    size_t config_len;
};

struct session_buffer {
    uint16_t id; /* global */
    struct session_ring *buffer;
};

struct pending_flush {
    struct pending_flush *next;
    struct session *session;
    uint64_t id;
    uint64_t flags;
    VEC(uint16_t) waiting; /* producers that have not acknowledged */
    uv_timer_t timer;
    void (*done)(void *ctx, struct session *s, bool ok);
    void *ctx;
    bool finished;
};

struct lifecycle_event {
    enum lifecycle field;
    uint64_t ts;
    uint32_t value;
    uint8_t *body; /* for the events with a message; else NULL, and the value counts */
    size_t body_len;
};

/* Another session went into this state. */
struct concurrent_event {
    uint64_t ts, session_id;
    enum session_state state;
    uint32_t uid, n_sources;
    char *name; /* NULL: none */
};

struct trigger_hit {
    uint64_t ts;
    char *name, *producer_name;
    uint32_t uid;
    uint64_t stop_delay_ms;
    bool emitted;
};

/* Producers of this machine that ended while they recorded, with something in their memory. */
struct local_losses {
    uint64_t producers;
    uint64_t producers_cut;   /* of those: they held more than what is in their memory */
    uint64_t packets_unknown; /* at most so many are lost */
    VEC(char *) names;        /* of the first of them */
};

struct session {
    struct service *service;
    uint64_t id;
    enum session_state state;
    struct service_consumer *consumer; /* NULL: detached, or never attached */
    char *detach_key;
    uint32_t consumer_uid;
    Mrd__TraceConfig *config;
    struct slice config_bytes; /* as emitted; mem_alloc()ed */
    VEC(struct session_buffer) buffers;
    VEC(struct instance *) instances;
    struct pending_flush *flushes;
    uv_timer_t timers[TIMER_COUNT];
    int open_handles;
    bool closing;
    int64_t started_realtime_ns;
    uint64_t started_boot_ns, stopped_boot_ns; /* 0: not yet */

    /* reading */
    struct clock_readings initial_snapshot;
    bool has_initial_snapshot, initial_snapshot_emitted;
    struct clock_readings snapshots[16];
    unsigned n_snapshots;
    struct clock_readings last_snapshot;
    VEC(struct lifecycle_event) events;
    VEC(struct trigger_hit) triggers;
    VEC(struct concurrent_event) concurrent;
    bool want_sync_marker, want_stats, did_config, did_once, did_all_started;
    VEC(struct session_machine) machines; /* what was emitted about other machines; by service.machines */
    struct local_losses local_lost;       /* of this machine's producers */
    struct u64map sequence_ids;           /* (machine, producer, writer) hashed → packet sequence id */
    uint32_t last_sequence_id;
    uint64_t chunks_discarded, patches_discarded; /* meant for our buffers, and refused */
    uint64_t invalid_packets, flushes_requested, flushes_succeeded, flushes_failed;
    int final_flush_outcome;
    uint64_t uuid_msb, uuid_lsb;
    struct trace_packet packet; /* scratch */
    struct trigger_hit *clone_trigger;
    bool triggered_start;

    /* writing into a file */
    int fd;                                        /* until its writer is there; -1 */
    struct file_writer *out;                       /* NULL: not yet, or not any more */
    bool file_more;                                /* a pass of writing is under way */
    bool file_full;                                /* the limit is reached */
    bool file_ended;                               /* all is queued */
    void (*written)(void *ctx, struct session *s); /* of a clone: instead of telling its consumer that it ended */
    void *written_ctx;
    uint64_t bytes_in_file; /* and in the queue */
    uint64_t max_file_bytes;
    unsigned write_period_ms;
    unsigned flush_period_ms;
    bool flush_before_write, write_pending;
    struct error file_error; /* why the file is not whole; code 0: it is */
    struct session_problems problems;
};

struct service_consumer {
    struct service *service;
    struct ipc_peer *peer;
    struct session *session;
    struct ipc_call enable_call, read_call, observe_call, flush_call;
    uint64_t observing; /* bits of ObservableEvents.Type */
    uv_idle_t read_task;
    bool reading, gone;
    uint64_t attached_notifications;
};

/* ---- consumer_port.c ---- */
void consumer_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args);
void consumer_port_disconnected(void *ctx, struct ipc_peer *peer);
/* `s`: the session that has ended; NULL: none was made, because of `error`. */
void consumer_notify_disabled(struct service_consumer *c, const struct session *s, const char *error);
void consumer_observe(struct service_consumer *c, const Mrd__ObservableEvents *events, uint64_t type);
void consumer_notify_instance(struct session *s, const struct instance *i);

/* ---- tracing_session.c ---- */
/* Takes `config` over in every case. NULL and err on refusal. `fd` (or -1) is taken over, too. */
struct session *session_enable(struct service *svc, struct service_consumer *c, Mrd__TraceConfig *config, int fd,
                               struct error *err);
bool session_start(struct session *s);
void session_disable(struct session *s, bool immediately);
void session_flush_and_disable(struct session *s);
/* Ends it at once. It is gone after this, or, when there is a file, as soon as that is written. */
void session_free(struct session *s);
/* Its consumer is gone: what it has recorded for a file is still written. */
void session_orphan(struct session *s);
void session_add_source(struct session *s, struct service_producer *p, const struct registered_source *r);
void session_add_all_sources(struct session *s);
/* `report`: what the producer said with it, empty when it is not asked. */
void session_instance_started(struct session *s, struct instance *i, struct slice report);
void session_instance_stopped(struct session *s, struct instance *i);
void session_remove_producer(struct session *s, struct service_producer *p);
void session_remove_source(struct session *s, struct service_producer *p, const char *name);
void session_change_config(struct session *s, const Mrd__TraceConfig *config);
void session_lifecycle(struct session *s, enum lifecycle field, bool snapshot);
void session_lifecycle_value(struct session *s, enum lifecycle field, uint32_t value);
void session_lifecycle_body(struct session *s, enum lifecycle field, struct slice body);
void session_snapshot_clocks(struct session *s, bool force);
struct session *session_alloc(struct service *svc, struct error *err);
const char *session_state_name(enum session_state st);
void session_check_started(struct session *s); /* says so when all data sources have started */
void session_stopped(struct session *s);       /* all have stopped, or nobody waits for them any more */
void session_ended(struct session *s);         /* … and its file is written: tells the consumer, or frees it */

/* ---- session_sources.c ---- */
void session_start_instance(struct session *s, struct instance *in);
void session_stop_instance(struct session *s, struct instance *in, bool immediately);
void session_free_instance(struct instance *i);
bool session_all_stopped(const struct session *s);
/* A regular expression of a config, as a full match; a bad one matches nothing. */
bool config_regex_matches(const char *pattern, const char *text);

/* ---- session_check.c ---- */
int session_check(struct service *svc, struct service_consumer *c, const Mrd__TraceConfig *config, int fd,
                  struct error *err);
/* The index of the buffer a data source writes to; -1 when there is none. */
int session_target_buffer(const Mrd__TraceConfig *config, const Mrd__DataSourceConfig *ds);

/* ---- flush.c ---- */
void session_flush(struct session *s, unsigned timeout_ms, uint64_t flags,
                   void (*done)(void *ctx, struct session *s, bool ok), void *ctx);
void flush_acknowledged(struct service_producer *p, uint64_t request_id);
void flush_producer_gone(struct session *s, struct service_producer *p);
void flush_abandon(struct session *s); /* the session is going: all callbacks with false */
void session_arm_flush(struct session *s);
void session_arm_clear(struct session *s);

/* ---- read.c ---- */
/* Puts packets into the batch until it holds about `threshold` bytes; true when there is more. `final`: nothing will be
 * written any more. */
bool session_read(struct session *s, struct batch *b, size_t threshold);
/* Only what tells of the session's end: events of its life, and TraceStats. */
void session_read_tail(struct session *s, struct batch *b);
uint32_t session_sequence_id(struct session *s, const struct trace_writer_identity *who);
/* What every packet of the service itself carries, and the end of one. */
void session_put_trusted(const struct session *s, struct pb_writer *w, bool clock);
void session_emit(struct batch *b, struct pb_writer *w);

/* ---- write_file.c ---- */
void session_start_file(struct session *s);
/* Queues everything that can be read; at the limit it disables the session. The file is written beside (file_writer.h).
 */
void session_write_file(struct session *s);
/* After the session is over: writes the rest; session_ended() when all is in the file, or at once without a file. */
void session_finish_file(struct session *s);
bool session_has_file(const struct session *s);
/* The service goes down and the file takes nothing. */
void session_abandon_file(struct session *s);

/* ---- trigger.c ---- */
void service_trigger(struct service *svc, const char *name, const char *producer_name, uint32_t uid);
bool session_awaits_trigger(const struct session *s); /* has triggers and none came: reading gives nothing */
void session_arm_trigger_timeout(struct session *s);

/* START_TRACING, STOP_TRACING or CLONE_SNAPSHOT; 0: no triggers. */
enum trigger_mode { TRIGGER_NONE = 0, TRIGGER_START = 1, TRIGGER_STOP = 2, TRIGGER_CLONE = 4 };
enum trigger_mode config_trigger_mode(const Mrd__TraceConfig *c);

/* ---- concurrent.c ---- */
/* Every change of state goes through here: other sessions may want to know. */
void session_set_state(struct session *s, enum session_state state);
void concurrent_emit(struct session *s, struct batch *b, struct pb_writer *w);
void concurrent_free(struct session *s);

/* ---- priority.c ---- */
typedef Mrd__PriorityBoostConfig PriorityBoost;
int priority_check(const PriorityBoost *b, struct error *err);
/* Sets the highest priority that an active session asks for, or the usual one. */
int priority_update(struct service *svc, struct error *err);

/* ---- clone.c ---- */
void session_clone(struct service_consumer *c, struct ipc_call call, const Mrd__CloneSessionRequest *req, int fd);

/* ---- stats.c ---- */
/* TraceStats in at most `max` bytes: the writers' part is left out when it does not fit. */
void session_put_stats(struct session *s, struct pb_writer *w, size_t max);

/* ---- state_query.c ---- */
void service_query_state(struct service_consumer *c, struct ipc_call call, bool sessions_only);

#endif
