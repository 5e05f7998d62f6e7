/* The tables of method names. */
#include "capture/ipc/ports.h"

#define X(name, text) text,
static const char *const producer_methods[] = {PRODUCER_PORT_METHODS(X)};
static const char *const consumer_methods[] = {CONSUMER_PORT_METHODS(X)};
static const char *const relay_methods[] = {RELAY_PORT_METHODS(X)};
#undef X

const struct ipc_service_desc ipc_producer_port = {"ProducerPort", producer_methods, PRODUCER_METHOD_COUNT};
const struct ipc_service_desc ipc_consumer_port = {"ConsumerPort", consumer_methods, CONSUMER_METHOD_COUNT};
const struct ipc_service_desc ipc_relay_port = {"RelayPort", relay_methods, RELAY_METHOD_COUNT};
