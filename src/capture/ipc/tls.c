/* Keys, the handshake, and the pump between a TLS socket and its plain end. */
#include "capture/ipc/tls.h"

#include "base/alloc.h"

#include <errno.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct tls_keys {
    SSL_CTX *ctx;
    char name[TLS_NAME_MAX];
    unsigned users; /* the owner, and links */
};

/* One direction. */
struct tls_buffer {
    uint8_t *p;
    size_t n, done;
    bool ended; /* its source has said its last */
};

enum { BUFFER_SIZE = 16384 }; /* one TLS record */
enum { LINGER_MS = 2000 };    /* at the end, for the other side to take the rest: without a byte that moves */
enum { LINGER_LOOKS = 5 };    /* all that a server waits: a client could take a byte at a time, for ever */

struct tls_link {
    struct tls_keys *keys;
    SSL *ssl;
    int fd, plain; /* network; our end of the pair */
    uv_poll_t poll[2];
    int events[2];
    uv_timer_t timer; /* of the handshake; of the end */
    int open_handles;
    struct tls_buffer in, out; /* from the network, to it */
    int wants;                 /* what TLS waits for on the network */
    bool is_server, established, closing;
    bool left;      /* the user has closed its end */
    bool said_last; /* the other side knows that nothing more comes */
    unsigned looks; /* at what is unsent, since the end began */
    int unsent;     /* what the network had not taken then */
    const struct tls_link_ops *ops;
    void *ctx;
};

enum { NETWORK, PLAIN };

/* ---- keys ---- */

static int tls_error(struct error *err, const char *what)
{
    unsigned long e = ERR_peek_last_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    ERR_clear_error();
    return error_set(err, -MRD_EINVALID, "%s: %s", what, reason ? reason : "unknown error");
}

static void common_name(X509 *cert, char *name, size_t size)
{
    if (X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, (int)size) <= 0)
        *name = 0;
}

static int load(struct tls_keys *k, const char *dir, struct error *err)
{
    char ca[4096], cert[4096], key[4096];
    struct stat st;
    snprintf(ca, sizeof ca, "%.4000s/ca.crt", dir);
    snprintf(cert, sizeof cert, "%.4000s/cert.pem", dir);
    snprintf(key, sizeof key, "%.4000s/key.pem", dir);
    if (stat(key, &st) != 0)
        return error_set_errno(err, errno, "%s (tracebox relay-keys makes keys)", key);
    if (st.st_mode & 077)
        return error_set(err, -MRD_EINVALID, "%s can be read by others: chmod 600 it", key);
    if (SSL_CTX_load_verify_locations(k->ctx, ca, NULL) != 1)
        return tls_error(err, ca);
    if (SSL_CTX_use_certificate_chain_file(k->ctx, cert) != 1)
        return tls_error(err, cert);
    if (SSL_CTX_use_PrivateKey_file(k->ctx, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(k->ctx) != 1)
        return tls_error(err, key);
    common_name(SSL_CTX_get0_certificate(k->ctx), k->name, sizeof k->name);
    return *k->name ? 0 : error_set(err, -MRD_EINVALID, "%s: certificate has no common name", cert);
}

int tls_keys_load(struct tls_keys **out, const char *dir, struct error *err)
{
    struct tls_keys *k = mem_zalloc(sizeof *k);
    if (!k || !(k->ctx = SSL_CTX_new(TLS_method()))) {
        mem_free(k);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    k->users = 1;
    SSL_CTX_set_min_proto_version(k->ctx, TLS1_3_VERSION);
    SSL_CTX_set_verify(k->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_mode(k->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(k->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(k->ctx, 0);
    int rc = load(k, dir, err);
    if (rc)
        tls_keys_free(k);
    else
        *out = k;
    return rc;
}

void tls_keys_free(struct tls_keys *k)
{
    if (!k || --k->users)
        return;
    SSL_CTX_free(k->ctx);
    mem_free(k);
}

const char *tls_keys_name(const struct tls_keys *k)
{
    return k->name;
}

/* ---- links ---- */

static void free_link(struct tls_link *l)
{
    SSL_free(l->ssl);
    if (l->fd >= 0)
        close(l->fd);
    if (l->plain >= 0)
        close(l->plain);
    mem_free(l->in.p);
    mem_free(l->out.p);
    tls_keys_free(l->keys);
    mem_free(l);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct tls_link *l = h->data;
    if (--l->open_handles == 0)
        free_link(l);
}

void tls_link_close(struct tls_link *l)
{
    if (!l || l->closing)
        return;
    l->closing = true;
    shutdown(l->fd, SHUT_RDWR);
    shutdown(l->plain, SHUT_RDWR);
    uv_close((uv_handle_t *)&l->poll[NETWORK], on_handle_closed);
    uv_close((uv_handle_t *)&l->poll[PLAIN], on_handle_closed);
    uv_close((uv_handle_t *)&l->timer, on_handle_closed);
}

static void end(struct tls_link *l, const char *why)
{
    if (l->closing)
        return;
    tls_link_close(l);
    l->ops->closed(l->ctx, l, why);
}

/* Why the last call of OpenSSL failed, in words for a log. */
static void failure(const struct tls_link *l, int ssl_error, char *why, size_t size)
{
    long verify = SSL_get_verify_result(l->ssl);
    unsigned long e = ERR_peek_last_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    int socket_error = 0;
    socklen_t len = sizeof socket_error;
    getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &socket_error, &len);
    if (verify != X509_V_OK)
        snprintf(why, size, "its certificate was rejected: %s", X509_verify_cert_error_string(verify));
    else if (e && ERR_GET_REASON(e) == SSL_R_WRONG_VERSION_NUMBER)
        snprintf(why, size, "the peer does not use TLS");
    else if (e && ERR_GET_REASON(e) == SSL_R_UNEXPECTED_EOF_WHILE_READING && !l->established)
        snprintf(why, size, "the peer closed the connection during the TLS handshake");
    else if (reason)
        snprintf(why, size, "%s", reason);
    else if (ssl_error == SSL_ERROR_SYSCALL && socket_error)
        snprintf(why, size, "%s", strerror(socket_error));
    else
        snprintf(why, size, "%s",
                 l->established ? "connection aborted" : "the peer closed the connection during the TLS handshake");
    ERR_clear_error();
}

/* What to make of a result of OpenSSL that is not a success: true to go on, false when the link has ended. */
static bool wait_or_end(struct tls_link *l, int result)
{
    char why[256];
    int e = SSL_get_error(l->ssl, result);
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
        l->wants |= e == SSL_ERROR_WANT_READ ? UV_READABLE : UV_WRITABLE;
        return true;
    }
    if (e == SSL_ERROR_ZERO_RETURN) {
        l->in.ended = true;
        return true;
    }
    failure(l, e, why, sizeof why);
    end(l, l->said_last ? NULL : why);
    return false;
}

/* The CA may sign for other purposes, too: a certificate has to say that it is for this one. */
static bool is_made_for(X509 *cert, uint32_t use)
{
    uint32_t uses = X509_get_extended_key_usage(cert);
    return uses != UINT32_MAX && uses & use;
}

static bool do_handshake(struct tls_link *l)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error) {
        end(l, strerror(error));
        return false;
    }
    ERR_clear_error();
    int r = SSL_do_handshake(l->ssl);
    if (r != 1)
        return wait_or_end(l, r);
    char name[TLS_NAME_MAX];
    X509 *cert = SSL_get1_peer_certificate(l->ssl);
    common_name(cert, name, sizeof name);
    bool fits = is_made_for(cert, l->is_server ? XKU_SSL_CLIENT : XKU_SSL_SERVER);
    X509_free(cert);
    if (!fits) {
        end(l, l->is_server
                   ? "its certificate was rejected: it is not one for relays (extendedKeyUsage clientAuth); make it "
                     "with tracebox relay-keys"
                   : "its certificate was rejected: it is not one for the host (extendedKeyUsage serverAuth); make "
                     "it with tracebox relay-keys");
        return false;
    }
    l->established = true;
    uv_timer_stop(&l->timer);
    if (l->ops->established)
        l->ops->established(l->ctx, l, name);
    return !l->closing;
}

static bool again(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* From the network to the plain end; *moved when something did. False when the link has ended. */
static bool pump_in(struct tls_link *l, bool *moved)
{
    struct tls_buffer *b = &l->in;
    if (!b->n && !b->ended) {
        ERR_clear_error();
        int r = SSL_read(l->ssl, b->p, BUFFER_SIZE);
        if (r > 0)
            b->n = (size_t)r;
        else if (!wait_or_end(l, r))
            return false;
        *moved |= r > 0;
    }
    if (b->n) {
        ssize_t r = send(l->plain, b->p + b->done, b->n - b->done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r < 0 && !again()) /* the user has gone: nobody reads this, but what it said last is still sent */
            b->done = b->n;
        b->done += r > 0 ? (size_t)r : 0;
        *moved |= r > 0;
    }
    if (b->done == b->n)
        b->n = b->done = 0;
    return true;
}

static bool pump_out(struct tls_link *l, bool *moved)
{
    struct tls_buffer *b = &l->out;
    if (!b->n && !b->ended) {
        ssize_t r = recv(l->plain, b->p, BUFFER_SIZE, MSG_DONTWAIT);
        if (r > 0)
            b->n = (size_t)r;
        else if (r == 0 || !again())
            b->ended = true;
        *moved |= r > 0;
    }
    if (b->n) {
        ERR_clear_error();
        int r = SSL_write(l->ssl, b->p + b->done, (int)(b->n - b->done));
        if (r > 0)
            b->done += (size_t)r;
        else if (!wait_or_end(l, r))
            return false;
        *moved |= r > 0;
    }
    if (b->done == b->n)
        b->n = b->done = 0;
    return true;
}

static void on_event(uv_poll_t *h, int status, int events);

static void watch(struct tls_link *l)
{
    const int want[2] = {
        [NETWORK] = l->established ? l->wants & (UV_WRITABLE | (l->in.n ? 0 : UV_READABLE)) : l->wants,
        [PLAIN] = (l->in.n ? UV_WRITABLE : 0) | (l->established && !l->out.n && !l->out.ended ? UV_READABLE : 0) |
                  (l->is_server && l->established && !l->left ? UV_DISCONNECT : 0),
    };
    for (int i = 0; i < 2; i++) {
        if (want[i] == l->events[i])
            continue;
        l->events[i] = want[i];
        if (want[i])
            uv_poll_start(&l->poll[i], want[i], on_event);
        else
            uv_poll_stop(&l->poll[i]);
    }
}

static void on_linger(uv_timer_t *t)
{
    struct tls_link *l = t->data;
    int unsent = 0;
    ioctl(l->fd, SIOCOUTQ, &unsent);
    bool still = l->said_last && (unsent == 0 || unsent >= l->unsent);
    if (still || (++l->looks >= LINGER_LOOKS && l->is_server))
        end(l, NULL);
    l->unsent = unsent;
}

/* The user has ended and all it said is with the kernel. To close now, with input unread, would reset the connection,
 * and what is on its way would be lost: the other side hears that nothing more comes, and has its time to end, too. */
static void start_shutdown(struct tls_link *l)
{
    ERR_clear_error();
    int r = SSL_shutdown(l->ssl);
    if (r < 0 && SSL_get_error(l->ssl, r) == SSL_ERROR_WANT_WRITE) {
        l->wants |= UV_WRITABLE;
        return;
    }
    l->said_last = true;
    shutdown(l->fd, SHUT_WR);
    ioctl(l->fd, SIOCOUTQ, &l->unsent);
    uv_timer_start(&l->timer, on_linger, LINGER_MS, LINGER_MS);
}

static void pump(struct tls_link *l)
{
    l->wants = 0;
    if (!l->established && !do_handshake(l))
        return;
    for (bool moved = l->established; moved;) {
        moved = false;
        l->wants = 0;
        if (!pump_in(l, &moved) || !pump_out(l, &moved))
            return;
    }
    if (l->in.ended && !l->in.n) {
        end(l, NULL);
        return;
    }
    if (l->out.ended && !l->out.n && !l->said_last)
        start_shutdown(l);
    watch(l);
}

static void on_event(uv_poll_t *h, int status, int events)
{
    struct tls_link *l = h->data;
    if (status < 0) /* the loop has stopped watching */
        l->events[h == &l->poll[PLAIN]] = 0;
    if (l->closing)
        return;
    if (events & UV_DISCONNECT && h == &l->poll[PLAIN]) {
        l->left = true;
        uv_timer_start(&l->timer, on_linger, LINGER_MS, LINGER_MS);
    }
    pump(l); /* it finds out by itself what is ready */
}

static void on_handshake_timeout(uv_timer_t *t)
{
    end(t->data, "the TLS handshake timed out; does the peer use TLS?");
}

int tls_link_open(struct tls_link **out, uv_loop_t *loop, struct tls_keys *keys, int fd, bool is_server,
                  const struct tls_link_ops *ops, void *ctx, int *plain, struct error *err)
{
    int pair[2] = {-1, -1};
    struct tls_link *l = mem_zalloc(sizeof *l);
    if (!l) {
        close(fd);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
    *l = (struct tls_link){.keys = keys, .fd = fd, .plain = pair[1], .is_server = is_server, .ops = ops, .ctx = ctx};
    keys->users++;
    l->in.p = mem_alloc(BUFFER_SIZE);
    l->out.p = mem_alloc(BUFFER_SIZE);
    l->ssl = SSL_new(keys->ctx);
    if (rc != 0 || !l->in.p || !l->out.p || !l->ssl || SSL_set_fd(l->ssl, fd) != 1 ||
        uv_poll_init(loop, &l->poll[NETWORK], fd) != 0) {
        if (pair[0] >= 0)
            close(pair[0]);
        free_link(l);
        return error_set(err, -MRD_ENOMEM, "no resources for a TLS connection");
    }
    if (is_server)
        SSL_set_accept_state(l->ssl);
    else
        SSL_set_connect_state(l->ssl);
    uv_poll_init(loop, &l->poll[PLAIN], l->plain);
    uv_timer_init(loop, &l->timer);
    l->poll[NETWORK].data = l->poll[PLAIN].data = l->timer.data = l;
    l->open_handles = 3;
    uv_timer_start(&l->timer, on_handshake_timeout, TLS_HANDSHAKE_MS, 0);
    l->wants = UV_READABLE | UV_WRITABLE; /* a connect that is under way ends in either */
    watch(l);
    *plain = pair[0];
    *out = l;
    return 0;
}
