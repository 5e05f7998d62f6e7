/* The state of the tracing service, shared by its parts:
 *
 *   service.c       life of the service, ids, counters      producer_port.c  what producers ask for
 *   commit.c        chunks and patches into the buffers     consumer_port.c  what consumers ask for
 *   session.c       the state machine of a session          session_check.c  which configs are refused
 *   flush.c         flushes and their acknowledgements       read.c           which packets go out, in which order
 *   write_file.c    sessions that write a file              trigger.c        start, stop and clone by trigger
 *   clone.c         read-only copies                        stats.c          TraceStats
 *   relay_port.c    machines that relay their producers     concurrent.c     what other sessions do meanwhile
 *   clock_order.c   which comparisons readers can follow
 *   relay_losses.c  what broken links cost                   absence.c        from when to when a machine was away
 *   session_ring.c  one ring, or one for each machine
 *   priority.c      the service's own priority
 *
 * Everything runs on one loop. A session points to data source instances, an instance to its producer; when a producer
 * goes, its instances go from every session. */
#ifndef MERIDIAN_CAPTURE_SERVICE_INTERNAL_H
#define MERIDIAN_CAPTURE_SERVICE_INTERNAL_H

#include "base/log.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/ipc/host.h"
#include "capture/service/batch.h"
#include "capture/service/clock_order.h"
#include "capture/service/clock_snapshot.h"
#include "capture/service/service.h"
#include "capture/service/session_ring.h"
#include "capture/shm/region.h"
#include "schema/service.pb-c.h"
#include "wire/pb_cursor.h"

enum session_state { SESSION_DISABLED, SESSION_CONFIGURED, SESSION_STARTED, SESSION_STOPPING, SESSION_CLONED };
enum instance_state { INSTANCE_CONFIGURED, INSTANCE_STARTING, INSTANCE_STARTED, INSTANCE_STOPPING, INSTANCE_STOPPED };

/* TracingServiceEvent fields (spec service 2) that are kept per session. */
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

struct service_producer;
struct service_consumer;
struct session;

struct registered_source {
    uint64_t id; /* as given by the producer; 0: none */
    char *name;
    bool will_notify_on_start, will_notify_on_stop, handles_clear, no_flush;
    uint8_t *descriptor; /* serialized, for QueryServiceState */
    size_t descriptor_len;
};

struct service_producer {
    struct service *service;
    struct ipc_peer *peer;
    uint16_t id;
    char *name, *sdk_version;
    struct ipc_call commands; /* the open GetAsyncCommand */
    struct shm_region shm;    /* p NULL until the first setup; emulated producers have none */
    uint32_t page_size;
    uint32_t page_hint, size_hint;
    int given_fd; /* shared memory that the producer brought, until the first setup; -1 */
    bool initialized, emulated, tracing_set_up, scraping;
    /* of other machines: */
    uint64_t connected_ns, commit_ns; /* when it came, and handed something over last */
    bool returns;                     /* a session waits to hear of it again */
    uint64_t whole_until_ns;          /* BOOTTIME there: all that was written before has come; 0: it does not tell */
    VEC(struct registered_source) sources;
    struct u64map writers;         /* writer id → buffer id (global) */
    struct u64map allowed_buffers; /* global ids this producer may write to */
};

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

/* A producer of another machine was lost: nothing that it wrote between these times (of our BOOTTIME) need be here. */
struct machine_absence {
    char producer[64];
    uint16_t producer_id, back_id; /* the lost one; the one that takes its place, 0: none yet */
    uint64_t since_ns, until_ns;   /* until_ns 0: it is away still */
};

/* What a session has lost of another machine (relay_losses.c, absence.c). */
struct machine_losses {
    bool recorded;           /* a producer of it had a part in the session */
    uint64_t relays_lost;    /* control connections that broke */
    uint64_t producers_lost; /* whose connection ended while they recorded */
    uint64_t producers_back;
    VEC(struct machine_absence) absences;
    bool absences_lost;        /* there were too many to tell each */
    uint64_t unfinished_bytes; /* of messages that were cut */
    uint64_t relay_bytes;      /* taken from producers and not handed over, as the relay tells */
};

/* What a session has told about another machine, and has to tell. */
struct session_machine {
    bool present;        /* its relay was connected while the session ran */
    bool told;           /* its SystemInfo */
    bool named;          /* its name, without more */
    bool synced;         /* a comparison of its clocks at least */
    uint64_t next_round; /* number of the first comparison that is not out yet */
    struct clock_order order;
    struct machine_losses losses;
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
    int fd; /* -1 */
    uint64_t bytes_in_file;
    uint64_t max_file_bytes;
    unsigned write_period_ms;
    unsigned flush_period_ms;
    bool flush_before_write, write_pending;
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

enum { CLOCK_ROUNDS_KEPT = 4096 };

/* Another machine, known by its id for as long as the service runs: it may leave and come back. */
struct service_machine {
    uint32_t id;
    unsigned relays;                /* control connections of it that are open */
    char name[128];                 /* as its connections gave it; "" unknown */
    struct slice system_info;       /* serialized SystemInfo; mem_alloc()ed */
    VEC(struct clock_round) rounds; /* the best ones of each burst, oldest first */
    uint64_t first_round;           /* number of rounds.p[0] */
    VEC(struct clock_round) burst;  /* the one under way */
};

/* A relay's own connection. */
struct service_relay {
    struct service *service;
    struct ipc_peer *peer;
    uint32_t machine;               /* index in service.machines */
    struct clock_readings ping;     /* the client's clocks in a PING without its UPDATE yet; n 0: none */
    struct clock_readings ping_at;  /* ours when it came */
    struct clock_readings first_at; /* ours when the relay came */
    uv_timer_t looks;               /* relay_watch.c */
    unsigned silent_looks;          /* since it spoke last */
    unsigned silent_ms;             /* how long it may be silent; 0: for ever */
};

/* When a session of this name began last: the guardrail against starting it again and again. */
struct named_start {
    uint64_t name_hash, at_ns;
};

struct trigger_record {
    uint64_t ts_ns;
    uint64_t name_hash;
};

struct service {
    uv_loop_t *loop;
    struct service_options o;
    struct ipc_host *producer_hosts[SERVICE_MAX_SOCKETS];
    unsigned n_producer_hosts;
    struct ipc_host *consumer_host;
    struct tls_keys *tls;    /* of links to other machines; NULL: none */
    struct ipc_guard *guard; /* NULL: no limits */
    uint32_t uid;
    int32_t pid;
    char machine_name[128];
    VEC(struct service_producer *) producers;
    VEC(struct service_consumer *) consumers;
    VEC(struct service_machine) machines;
    VEC(struct session *) sessions;
    struct u64map buffers; /* global id → struct session_buffer's buffer (as a number) */
    uint16_t last_producer_id, last_buffer_id;
    uint64_t producers_seen, last_instance_id, last_session_id, last_flush_id;
    bool lockdown;
    VEC(struct trigger_record) trigger_history;
    VEC(struct named_start) named_starts;
    unsigned boost_rank; /* of the priority that we run with; 0: the usual */
    int usual_niceness;
    struct pb_writer scratch;
    struct batch batch; /* of the read pass under way */
    struct log_limit log_limit;
    bool closing;
};

/* ---- service.c ---- */
struct service_producer *service_find_producer(struct service *svc, uint16_t id);
struct session *service_find_session(struct service *svc, uint64_t id);
uint16_t service_new_buffer_id(struct service *svc); /* 0: none left */
struct session_ring *service_find_buffer(struct service *svc, uint64_t global_id);

/* ---- producer_port.c ---- */
extern const struct ipc_service_desc *const service_producer_desc;
void producer_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args);
void producer_port_disconnected(void *ctx, struct ipc_peer *peer);
/* Sends an async command: `field` of GetAsyncCommandResponse with `body`. */
void producer_send_command(struct service_producer *p, unsigned field, struct slice body, int fd);
/* The shared memory of the producer, made for the session's config on the first call. */
void producer_setup_tracing(struct service_producer *p, const Mrd__TraceConfig *config);

/* ---- commit.c ---- */
void commit_data(struct service_producer *p, struct slice request);
/* Copies what producers have not committed; for the session's buffers only. */
void commit_scrape(struct service_producer *p, struct session *s);

/* ---- relay_port.c ---- */
void relay_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args);
void relay_port_disconnected(void *ctx, struct ipc_peer *peer);
void relay_free_machines(struct service *svc);
/* The index in service.machines, made when new; -1 when there are too many or memory is out. */
int64_t relay_machine_of(struct service *svc, uint32_t id);
/* The session's entry of a machine; NULL when memory is out. */
struct session_machine *relay_told_of(struct session *s, size_t machine);
/* The session begins: the machines that are connected are in it. */
void relay_session_started(struct session *s);
/* A machine's connection gives its name. */
void relay_name_machine(struct service_machine *m, const struct ipc_identity *id);
/* Adds what `w` holds as one packet, and clears it. */
void relay_emit_packet(struct batch *b, struct pb_writer *w);
/* Adds the packets about other machines that the session has not got yet: SystemInfo, and comparisons of clocks since
 * (and a few from before) its start. */
void relay_emit_system_info(struct session *s, struct batch *b, struct pb_writer *w);
void relay_emit_clocks(struct session *s, struct batch *b, struct pb_writer *w);

/* ---- relay_watch.c ---- */
void relay_watch_begin(struct service_relay *r);
void relay_watch_heard(struct service_relay *r, struct slice args); /* a request came */
void relay_watch_end(struct service_relay *r);                      /* frees it */

/* ---- relay_losses.c ---- */
/* A producer got its part in a session; its connection ended while it had one. Nothing to do for those of the host. */
void relay_producer_joined(struct session *s, struct service_producer *p);
void relay_producer_lost(struct session *s, const struct service_producer *p);
/* It was asked for what it holds, or to stop, and has not answered: the recording ends without its last words. */
void relay_producer_silent(struct session *s, const struct service_producer *p);
/* It says that it records, or hands something over. */
void relay_producer_heard(struct service_producer *p);
void relay_free_losses(struct session *s);
/* The control connection of a machine's relay broke. */
void relay_lost(struct service *svc, uint32_t machine_id);
/* What a relay's request says about bytes that it lost. */
void relay_report_lost(struct service *svc, uint32_t machine_id, struct slice args);
void relay_copy_losses(struct session *to, const struct session *from);
/* One packet for each machine that lost something or was left out. */
void relay_emit_losses(struct session *s, struct batch *b, struct pb_writer *w);

/* ---- absence.c ---- */
enum { ABSENCE_PRODUCER = 1, ABSENCE_SINCE_NS = 2, ABSENCE_UNTIL_NS = 3, ABSENCE_SEQUENCE = 4 };
enum { ABSENCE_SEQUENCE_ID = 1, ABSENCE_SEQUENCE_LAST_NS = 2 };
void absence_begin(struct session *s, struct machine_losses *l, const struct service_machine *m,
                   const struct service_producer *p);
/* The producer takes the place of one of its name that is away; false: none is. */
bool absence_returns(struct machine_losses *l, const struct service_producer *p);
void absence_end(struct machine_losses *l, const struct service_producer *p);
/* For how long at least one was away. */
uint64_t absence_total_ns(struct machine_losses *l, uint64_t now_ns);
/* One message `field` each. */
void absence_put(struct session *s, const struct machine_losses *l, struct pb_writer *w, uint32_t field);

/* ---- consumer_port.c ---- */
void consumer_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args);
void consumer_port_disconnected(void *ctx, struct ipc_peer *peer);
void consumer_notify_disabled(struct service_consumer *c, const char *error);
void consumer_observe(struct service_consumer *c, const Mrd__ObservableEvents *events, uint64_t type);
void consumer_notify_instance(struct session *s, const struct instance *i);

/* ---- session.c ---- */
/* Takes `config` over in every case. NULL and err on refusal. `fd` (or -1) is taken over, too. */
struct session *session_enable(struct service *svc, struct service_consumer *c, Mrd__TraceConfig *config, int fd,
                               struct error *err);
bool session_start(struct session *s);
void session_disable(struct session *s, bool immediately);
void session_flush_and_disable(struct session *s);
void session_free(struct session *s);
void session_add_source(struct session *s, struct service_producer *p, const struct registered_source *r);
void session_add_all_sources(struct session *s);
void session_instance_started(struct session *s, struct instance *i);
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
uint32_t session_sequence_id(struct session *s, const struct trace_writer_identity *who);
/* What every packet of the service itself carries, and the end of one. */
void session_put_trusted(const struct session *s, struct pb_writer *w, bool clock);
void session_emit(struct batch *b, struct pb_writer *w);

/* ---- write_file.c ---- */
void session_start_file(struct session *s);
/* Writes everything that can be read; at the limit it closes the file and disables the session. */
void session_write_file(struct session *s);
void session_finish_file(struct session *s);

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
void session_put_stats(struct session *s, struct pb_writer *w);

/* ---- state_query.c ---- */
void service_query_state(struct service_consumer *c, struct ipc_call call, bool sessions_only);

#endif
