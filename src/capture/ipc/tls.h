/* TLS with mutual authentication for links between machines (OpenSSL): who has no certificate of the common authority
 * does not get in, on either side.
 *
 * A link stands between a network socket and its user: the user gets one end of a socket pair and reads and writes
 * plain bytes there, so that nothing else has to know about TLS. Nothing blocks: a peer that stops in the middle of the
 * handshake costs one descriptor until it times out. */
#ifndef MERIDIAN_CAPTURE_IPC_TLS_H
#define MERIDIAN_CAPTURE_IPC_TLS_H

#include "base/error.h"

#include <stdbool.h>
#include <uv.h>

enum { TLS_NAME_MAX = 128, TLS_HANDSHAKE_MS = 5000 };

struct tls_keys;
struct tls_link;

/* Loads DIR/ca.crt, DIR/cert.pem and DIR/key.pem, as `tracebox relay-keys` writes them. Without a private key that
 * others cannot read, and belongs to the certificate, an error that says so. */
int tls_keys_load(struct tls_keys **out, const char *dir, struct error *err);
void tls_keys_free(struct tls_keys *k); /* links may still use it; NULL is fine */

/* The common name in our certificate: the machine's name. */
const char *tls_keys_name(const struct tls_keys *k);

struct tls_link_ops {
    /* Both sides have proven who they are. `name` is the common name in the peer's certificate. May be NULL. */
    void (*established)(void *ctx, struct tls_link *l, const char *name);
    /* It has ended (and is gone after this), with the reason when it failed, else NULL. */
    void (*closed)(void *ctx, struct tls_link *l, const char *why);
};

/* Puts TLS on `fd` (taken over, also on failure; a connect may still be under way). *plain is the user's end. */
int tls_link_open(struct tls_link **out, uv_loop_t *loop, struct tls_keys *keys, int fd, bool is_server,
                  const struct tls_link_ops *ops, void *ctx, int *plain, struct error *err);

/* Ends it without a callback. NULL is fine. */
void tls_link_close(struct tls_link *l);

#endif
