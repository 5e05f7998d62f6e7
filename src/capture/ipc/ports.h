/* The services of the protocol and their methods, in the order that gives them their ids. */
#ifndef MERIDIAN_CAPTURE_IPC_PORTS_H
#define MERIDIAN_CAPTURE_IPC_PORTS_H

#define PRODUCER_PORT_METHODS(X)                                                                                       \
    X(INITIALIZE_CONNECTION, "InitializeConnection")                                                                   \
    X(REGISTER_DATA_SOURCE, "RegisterDataSource")                                                                      \
    X(UNREGISTER_DATA_SOURCE, "UnregisterDataSource")                                                                  \
    X(COMMIT_DATA, "CommitData")                                                                                       \
    X(GET_ASYNC_COMMAND, "GetAsyncCommand")                                                                            \
    X(REGISTER_TRACE_WRITER, "RegisterTraceWriter")                                                                    \
    X(UNREGISTER_TRACE_WRITER, "UnregisterTraceWriter")                                                                \
    X(NOTIFY_DATA_SOURCE_STARTED, "NotifyDataSourceStarted")                                                           \
    X(NOTIFY_DATA_SOURCE_STOPPED, "NotifyDataSourceStopped")                                                           \
    X(ACTIVATE_TRIGGERS, "ActivateTriggers")                                                                           \
    X(SYNC, "Sync")                                                                                                    \
    X(UPDATE_DATA_SOURCE, "UpdateDataSource")

#define CONSUMER_PORT_METHODS(X)                                                                                       \
    X(ENABLE_TRACING, "EnableTracing")                                                                                 \
    X(DISABLE_TRACING, "DisableTracing")                                                                               \
    X(READ_BUFFERS, "ReadBuffers")                                                                                     \
    X(FREE_BUFFERS, "FreeBuffers")                                                                                     \
    X(FLUSH, "Flush")                                                                                                  \
    X(START_TRACING, "StartTracing")                                                                                   \
    X(CHANGE_TRACE_CONFIG, "ChangeTraceConfig")                                                                        \
    X(DETACH, "Detach")                                                                                                \
    X(ATTACH, "Attach")                                                                                                \
    X(GET_TRACE_STATS, "GetTraceStats")                                                                                \
    X(OBSERVE_EVENTS, "ObserveEvents")                                                                                 \
    X(QUERY_SERVICE_STATE, "QueryServiceState")                                                                        \
    X(QUERY_CAPABILITIES, "QueryCapabilities")                                                                         \
    X(SAVE_TRACE_FOR_BUGREPORT, "SaveTraceForBugreport")                                                               \
    X(CLONE_SESSION, "CloneSession")

#define RELAY_PORT_METHODS(X)                                                                                          \
    X(INIT_RELAY, "InitRelay")                                                                                         \
    X(SYNC_CLOCK, "SyncClock")

/* 0-based; the id on the wire is one more. */
#define X(name, text) PRODUCER_##name,
enum producer_method { PRODUCER_PORT_METHODS(X) PRODUCER_METHOD_COUNT };
#undef X
#define X(name, text) CONSUMER_##name,
enum consumer_method { CONSUMER_PORT_METHODS(X) CONSUMER_METHOD_COUNT };
#undef X
#define X(name, text) RELAY_##name,
enum relay_method { RELAY_PORT_METHODS(X) RELAY_METHOD_COUNT };
#undef X

/* A service as both ends know it. */
struct ipc_service_desc {
    const char *name;
    const char *const *methods;
    unsigned n_methods;
};

extern const struct ipc_service_desc ipc_producer_port;
extern const struct ipc_service_desc ipc_consumer_port;
extern const struct ipc_service_desc ipc_relay_port;

/* Flush flags: reason in bits 0-3, initiator in bits 4-7, clone target in bits 8-11. */
enum { FLUSH_REASON_PERIODIC = 1, FLUSH_REASON_STOP = 2, FLUSH_REASON_CLONE = 3, FLUSH_REASON_EXPLICIT = 4 };
enum { FLUSH_BY_TRACED = 1 << 4, FLUSH_BY_PERFETTO = 2 << 4 };
enum { FLUSH_CLONE_BUGREPORT = 1 << 8 };

/* Fields of ours in the requests of a relay; a host that does not know them skips them. */
enum {
    RELAY_FIELD_LOST_BYTES = 990,   /* InitRelay, SyncClock: lost with links since the last report */
    RELAY_FIELD_PING_LATE = 991,    /* SyncClock UPDATE: the PING left so many ns later than its clocks say */
    RELAY_FIELD_CLOCK_SOURCE = 993, /* SyncClock: name of the kernel's clock source; before the clocks of a PING, behind
                                       those of an UPDATE */
    RELAY_FIELD_PERIOD_MS = 992,    /* InitRelay: the host hears from us at least so often */
};

/* Likewise, of a producer in its InitializeConnection. */
enum {
    INITIALIZE_FIELD_SCRAPE_AT_END = 990, /* 1: what is in the shared memory when the connection ends may be taken */
    SCRAPE_WHOLE_KNOWN = 2,            /* … and the length of a fragment begins with 0 until the fragment is whole */
    SCRAPE_TELLS_END = 3,              /* … and its last CommitData has COMMIT_FIELD_FINISHED, or it was cut off */
    SCRAPE_KEEPS_LENGTHS = 4,          /* … and lengths that come late are in its memory, too (capture/shm/abi.h) */
    INITIALIZE_FIELD_READS_MORE = 991, /* bool: it holds more than is in its memory, such as the kernel's buffers */
};

/* Likewise, of a producer in its CommitData. */
enum {
    COMMIT_FIELD_WHOLE_UNTIL = 990, /* of another machine, BOOTTIME there: what was written before came with this */
    COMMIT_FIELD_FINISHED = 991,    /* bool: it ends now and has handed over everything */
    MOVE_FIELD_FILLED = 990,        /* in chunks_to_move, of shared memory: bytes of the chunk in use */
};

#endif
