/* Other machines: what their relays tell, what is lost of them, and what sessions record of it. */
#ifndef MERIDIAN_CAPTURE_SERVICE_RELAY_H
#define MERIDIAN_CAPTURE_SERVICE_RELAY_H

#include "base/vec.h"
#include "capture/common/clock_source.h"
#include "capture/ipc/host.h"
#include "capture/service/batch.h"
#include "capture/service/clock_order.h"
#include "capture/service/clock_snapshot.h"

struct service;
struct service_producer;
struct session;

enum { CLOCK_ROUNDS_KEPT = 8192 };

/* Another machine, known by its id for as long as the service runs: it may leave and come back. */
struct service_machine {
    uint32_t id;
    unsigned relays;                       /* control connections of it that are open */
    char name[128];                        /* as its connections gave it; "" unknown */
    struct slice system_info;              /* serialized SystemInfo; mem_alloc()ed */
    VEC(struct clock_round) rounds;        /* the best ones of each burst, oldest first */
    uint64_t first_round;                  /* number of rounds.p[0] */
    VEC(struct clock_round) burst;         /* the one under way */
    char source[2][CLOCK_SOURCE_NAME_MAX]; /* the clock sources of its kernel and of ours at the last comparison */
    uint32_t source_period;                /* how many there have been */
};

/* A relay's own connection. */
struct service_relay {
    struct service *service;
    struct ipc_peer *peer;
    uint32_t machine;                           /* index in service.machines */
    struct clock_readings ping;                 /* the client's clocks in a PING without its UPDATE yet; n 0: none */
    struct clock_readings ping_at;              /* ours when it came */
    char ping_source[2][CLOCK_SOURCE_NAME_MAX]; /* the clock sources before the PING: its, ours */
    struct clock_readings first_at;             /* ours when the relay came */
    uv_timer_t looks;                           /* relay_watch.c */
    unsigned silent_looks;                      /* since it spoke last */
    unsigned silent_ms;                         /* how long it may be silent; 0: for ever */
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
    uint64_t producers_cut;  /* of those: before they had handed over everything, as far as is known */
    uint64_t producers_back;
    VEC(struct machine_absence) absences;
    uint64_t unfinished_bytes; /* of messages that were cut */
    uint64_t relay_bytes;      /* taken from producers and not handed over, as the relay tells */
};

/* What a session has told about another machine, and has to tell. */
struct session_machine {
    bool present;        /* its relay was connected while the session ran */
    bool described;      /* its SystemInfo was written */
    bool named;          /* its name was written, maybe without more */
    bool synced;         /* a comparison of its clocks at least */
    uint64_t next_round; /* number of the first comparison that is not out yet */
    struct clock_order order;
    struct machine_losses losses;
};

/* ---- relay_port.c ---- */
void relay_port_invoke(void *ctx, unsigned method, struct ipc_call call, struct slice args);
void relay_port_disconnected(void *ctx, struct ipc_peer *peer);
void relay_free_machines(struct service *svc);
/* Frees what is known of machines that are gone and that no session is about. */
void relay_forget_idle(struct service *svc);
/* The index in service.machines, made when new; -1 when there are too many or memory is out. */
int64_t relay_machine_of(struct service *svc, uint32_t id);
/* The session's entry of a machine; NULL when memory is out. */
struct session_machine *relay_session_machine(struct session *s, size_t machine);
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
/* A producer of this machine has ended with something in its memory. */
void relay_name_lost(struct session *s, const struct service_producer *p);
void relay_free_losses(struct session *s);
/* The control connection of a machine's relay broke. */
void relay_lost(struct service *svc, uint32_t machine_id);
/* What a relay's request says about bytes that it lost. */
void relay_report_lost(struct service *svc, uint32_t machine_id, struct slice args);
void relay_copy_losses(struct session *to, const struct session *from);
/* One packet for each machine that lost something or was left out. */
void relay_emit_losses(struct session *s, struct batch *b, struct pb_writer *w);

/* ---- absence.c ---- */
/* False: it was away already. */
bool absence_begin(struct session *s, struct machine_losses *l, const struct service_machine *m,
                   const struct service_producer *p);
/* The producer takes the place of one of its name that is away; false: none is. */
bool absence_returns(struct machine_losses *l, const struct service_producer *p);
void absence_end(struct machine_losses *l, const struct service_producer *p);
/* For how long at least one was away. */
uint64_t absence_total_ns(struct machine_losses *l, uint64_t now_ns);
/* The sequences of a session by their producers, for many absences. */
struct sequence_of_producer {
    uint32_t producer_id, order;
    const struct trace_sequence_stats *sequence;
};
struct sequences_of_producers {
    VEC(struct sequence_of_producer) list;
};
/* False when memory is out. */
bool absence_list_sequences(const struct session *s, struct sequences_of_producers *all);
/* One message `field` each. */
void absence_put(struct session *s, const struct machine_losses *l, const struct sequences_of_producers *all,
                 struct pb_writer *w, uint32_t field);

#endif
