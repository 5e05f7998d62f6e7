/* The tracing service on a loop of the test, with consumers and producers that the test plays over its sockets. */
#ifndef MERIDIAN_TEST_SERVICE_FIXTURE_H
#define MERIDIAN_TEST_SERVICE_FIXTURE_H

#include "capture/ipc/client.h"
#include "capture/service/producers.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#include "loop_fixture.h"

struct world {
    uv_loop_t loop;
    struct service *service;
    char address[2][64]; /* of producers, of consumers */
};

/* The answers to one call. */
struct replies {
    unsigned n;
    bool success, has_more; /* of the last one */
    struct pb_writer last, all;
};

struct consumer {
    struct world *world;
    struct ipc_client *client;
    bool bound, gone;
    struct service_consumer *inside; /* the service's side */
    struct replies enabled, observed;
};

/* A command of the service. */
struct command_seen {
    uint32_t field; /* of GetAsyncCommandResponse */
    struct pb_writer body;
};

struct producer {
    struct world *world;
    struct ipc_client *client;
    bool bound, gone;
    struct service_producer *inside;
    struct replies commands;
    VEC(struct command_seen) seen;
    uint8_t *memory; /* shared with the service; NULL: not yet */
    uint32_t n_chunks;
};

void world_open(struct world *w);
void world_close(struct world *w); /* after its consumers and producers */
/* Lets everything that is on its way arrive. */
void world_settle(struct world *w);
/* A session of the service: the i-th that there is. */
struct session *world_session(struct world *w, size_t i);

void replies_free(struct replies *a);
/* A text field of the last answer, or "". Valid until the next call. */
const char *reply_text(const struct replies *a, uint32_t field);
uint64_t reply_number(const struct replies *a, uint32_t field);

/* A TraceConfig written as text. */
Mrd__TraceConfig *config_of(const char *text);

void consumer_join(struct consumer *c, struct world *w);
void consumer_leave(struct consumer *c);
/* Makes the service take it for a process of another user. */
void consumer_is(struct consumer *c, uint32_t uid);
/* Calls a method and waits for its (last) answer; args as put() of pb_text.h writes them. */
struct replies consumer_call(struct consumer *c, unsigned method, const char *args);
bool consumer_ok(struct consumer *c, unsigned method, const char *args); /* … whether it went well */
/* Begins a session with a config written as text. "" when it is accepted, else why not. */
const char *consumer_enable(struct consumer *c, const char *config);
/* Listens to observable events: `types` as bits. */
void consumer_listen(struct consumer *c, uint64_t types);
/* What ReadBuffers gives, as bytes of a trace file. */
struct pb_writer consumer_read(struct consumer *c);
unsigned count_packets(const struct pb_writer *trace, uint32_t field); /* those that have the field */
/* True when a packet holds the text in TestEvent.str, as producer_write() writes it. */
bool has_text(const struct pb_writer *trace, const char *text);

/* Connects as NAME and registers a data source, written as a DataSourceDescriptor in numbers: "1'src' 2:1". */
void producer_join(struct producer *p, struct world *w, const char *name, const char *descriptor);
void producer_leave(struct producer *p);
bool producer_ok(struct producer *p, unsigned method, const char *args);
/* How many commands of a kind have come; the last one's body, which is waited for; a number of it. */
unsigned producer_count(const struct producer *p, uint32_t command);
struct slice producer_last(const struct producer *p, uint32_t command);
uint64_t producer_number(const struct producer *p, uint32_t command, uint32_t field);
/* Writes a packet with a text into the buffer of its data source, and commits it; `flush`: answers that request, too
 * (0: none). */
void producer_write(struct producer *p, const char *text, uint64_t flush);
/* Answers the last flush. */
void producer_flushed(struct producer *p);

#endif
