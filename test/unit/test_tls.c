/* Tests TLS links: keys as `tracebox relay-keys` makes them, who is let in, and that bytes arrive as they were sent. */
#include "capture/common/applet.h"
#include "capture/ipc/tls.h"

#include "loop_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { CLIENT, SERVER };

/* ---- keys ---- */

static char root[64]; /* two authorities: root/a and root/b, each with host, web1 and web2 */

static const char *path_of(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", root, name);
    return p;
}

static void make_keys(const char *dir)
{
    char words[4][256] = {"relay-keys", "", "web1", "web2"};
    char *argv[] = {words[0], words[1], (char[]){"--machine"}, words[2], (char[]){"--machine"}, words[3], NULL};
    snprintf(words[1], sizeof words[1], "%s", path_of(dir));
    ck_assert_int_eq(relay_keys_main(6, argv), 0);
}

static void copy_file(const char *from, const char *to, mode_t mode)
{
    char text[8192];
    int in = open(path_of(from), O_RDONLY), out = open(path_of(to), O_WRONLY | O_CREAT | O_TRUNC, mode);
    ssize_t n = read(in, text, sizeof text);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(write(out, text, (size_t)n), n);
    close(in);
    close(out);
}

/* Another certificate for a/web1's key in root/NAME, signed by the same authority. */
static void sign_again(const char *name, const char *common_name, const char *usage, int first_day, int last_day)
{
    char file[160];
    mkdir(path_of(name), 0700);
    snprintf(file, sizeof file, "%s/key.pem", name);
    copy_file("a/web1/key.pem", file, 0600);
    snprintf(file, sizeof file, "%s/ca.crt", name);
    copy_file("a/ca.crt", file, 0644);
    FILE *f = fopen(path_of("a/ca.key"), "r"), *k = fopen(path_of("a/web1/key.pem"), "r");
    EVP_PKEY *ca_key = PEM_read_PrivateKey(f, NULL, NULL, NULL), *key = PEM_read_PrivateKey(k, NULL, NULL, NULL);
    fclose(f);
    fclose(k);
    f = fopen(path_of("a/ca.crt"), "r");
    X509 *ca = PEM_read_X509(f, NULL, NULL, NULL), *cert = X509_new();
    fclose(f);
    ck_assert(ca_key && key && ca && cert);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), 77);
    X509_time_adj_ex(X509_getm_notBefore(cert), first_day, 0, NULL);
    X509_time_adj_ex(X509_getm_notAfter(cert), last_day, 0, NULL);
    X509_set_pubkey(cert, key);
    X509_set_issuer_name(cert, X509_get_subject_name(ca));
    if (common_name)
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8, (const unsigned char *)common_name,
                                   -1, -1, 0);
    if (usage) {
        X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, NULL, NID_ext_key_usage, usage);
        ck_assert_int_eq(X509_add_ext(cert, x, -1), 1);
        X509_EXTENSION_free(x);
    }
    ck_assert_int_gt(X509_sign(cert, ca_key, EVP_sha256()), 0);
    snprintf(file, sizeof file, "%s/cert.pem", name);
    f = fopen(path_of(file), "w");
    ck_assert_int_eq(PEM_write_X509(f, cert), 1);
    fclose(f);
    X509_free(cert);
    X509_free(ca);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void make_all_keys(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the daemons do */
    strcpy(root, "/tmp/meridian-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    fflush(stdout);
    int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY); /* relay-keys prints what it makes */
    dup2(null, STDOUT_FILENO);
    make_keys("a");
    make_keys("b");
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    close(null);
    sign_again("expired", "web1", "clientAuth", -30, -1);
    sign_again("early", "web1", "clientAuth", 10, 30);
    sign_again("old_host", "host", "serverAuth", -30, -1);
    sign_again("any_purpose", "web1", NULL, -1, 30);
    sign_again("nameless", NULL, "clientAuth", -1, 30);
}

static void remove_keys(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct tls_keys *load_keys(const char *dir)
{
    struct tls_keys *k = NULL;
    struct error err = {0};
    int rc = tls_keys_load(&k, path_of(dir), &err);
    ck_assert_msg(rc == 0, "%s: %s", dir, err.text);
    return k;
}

/* ---- links ---- */

struct end {
    struct tls_link *link;
    int plain;
    bool established;
    unsigned closed;
    char name[128], why[256];
    size_t sent, got;
};

static uv_loop_t loop;
static struct end ends[2];

static void on_established(void *ctx, struct tls_link *l, const char *name)
{
    struct end *e = ctx;
    ck_assert_ptr_eq(e->link, l);
    ck_assert(!e->established);
    e->established = true;
    snprintf(e->name, sizeof e->name, "%s", name);
}

static void on_closed(void *ctx, struct tls_link *l, const char *why)
{
    struct end *e = ctx;
    ck_assert_ptr_eq(e->link, l);
    e->closed++;
    snprintf(e->why, sizeof e->why, "%s", why ? why : "");
}

static const struct tls_link_ops ops = {on_established, on_closed};

/* Two connected sockets of this machine. */
static void connect_pair(int fd[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&a, &len);
    fd[CLIENT] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd[CLIENT], (struct sockaddr *)&a, sizeof a), 0);
    fd[SERVER] = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd[SERVER], 0);
    fcntl(fd[CLIENT], F_SETFL, O_NONBLOCK);
    fcntl(fd[SERVER], F_SETFL, O_NONBLOCK);
    close(listener);
}

static void open_end(int side, const char *dir, int fd)
{
    struct error err = {0};
    struct tls_keys *keys = load_keys(dir);
    struct end *e = &ends[side];
    *e = (struct end){.plain = -1};
    ck_assert_int_eq(tls_link_open(&e->link, &loop, keys, fd, side == SERVER, &ops, e, &e->plain, &err), 0);
    tls_keys_free(keys); /* the link keeps them */
}

static void begin(const char *server, const char *client)
{
    int fd[2];
    uv_loop_init(&loop);
    connect_pair(fd);
    open_end(SERVER, server, fd[SERVER]);
    open_end(CLIENT, client, fd[CLIENT]);
}

static void end_all(void)
{
    for (int i = 0; i < 2; i++) {
        if (ends[i].link && !ends[i].closed)
            tls_link_close(ends[i].link);
        if (ends[i].link && ends[i].plain >= 0)
            close(ends[i].plain);
    }
    loop_end(&loop);
}

START_TEST(each_hears_the_others_name)
{
    begin("a/host", "a/web1");
    RUN_UNTIL(&loop, ends[CLIENT].established && ends[SERVER].established);
    ck_assert_str_eq(ends[SERVER].name, "web1");
    ck_assert_str_eq(ends[CLIENT].name, "host");
    ck_assert_uint_eq(ends[CLIENT].closed + ends[SERVER].closed, 0);
    struct tls_keys *k = load_keys("a/web2");
    ck_assert_str_eq(tls_keys_name(k), "web2");
    tls_keys_free(k);
    end_all();
}
END_TEST

/* ---- who does not get in ---- */

static const struct {
    const char *server, *client;
    int refused_by;
    const char *why;
} strangers[] = {
    {"a/host", "b/web1", CLIENT, "its certificate was rejected: "}, /* the client looks first */
    {"b/host", "a/web1", CLIENT, "its certificate was rejected: "},
    {"a/web2", "a/web1", CLIENT, "certificate purpose"}, /* a machine that poses as the host */
    {"a/host", "a/host", SERVER, "certificate purpose"}, /* the host's certificate is not for machines */
    {"a/host", "expired", SERVER, "certificate has expired"},
    {"a/host", "early", SERVER, "certificate is not yet valid"},
    {"old_host", "a/web1", CLIENT, "certificate has expired"},
    {"a/host", "any_purpose", SERVER, "extendedKeyUsage clientAuth"},
    {"any_purpose", "a/web1", CLIENT, "extendedKeyUsage serverAuth"},
};

START_TEST(strangers_are_refused)
{
    for (size_t row = 0; row < sizeof strangers / sizeof *strangers; row++) {
        const struct end *refuses = &ends[strangers[row].refused_by];
        begin(strangers[row].server, strangers[row].client);
        ck_assert_int_eq(write(ends[CLIENT].plain, "secret", 6), 6); /* waits for the handshake */
        RUN_UNTIL(&loop, ends[CLIENT].closed && ends[SERVER].closed);
        ck_assert(!refuses->established);
        ck_assert_msg(strstr(refuses->why, strangers[row].why), "\"%s\" does not say \"%s\"", refuses->why,
                      strangers[row].why);
        ck_assert_uint_eq(ends[CLIENT].closed, 1);
        ck_assert_uint_eq(ends[SERVER].closed, 1);
        char text[16];
        ck_assert_int_eq(read(ends[SERVER].plain, text, sizeof text), 0);
        end_all();
    }
}
END_TEST

/* A client that the test plays: without a certificate, or with an old protocol. */
static const struct {
    const char *keys; /* NULL: none */
    int protocol;
    const char *why;
} odd_clients[] = {
    {NULL, TLS1_3_VERSION, "peer did not return a certificate"},
    {"a/web1", TLS1_2_VERSION, "unsupported protocol"},
};

/* A step of a handshake that the test does; true when it is over. */
static bool shake(SSL *ssl)
{
    int r = SSL_do_handshake(ssl), e = r == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, r);
    return e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE;
}

START_TEST(odd_clients_are_refused)
{
    for (size_t row = 0; row < sizeof odd_clients / sizeof *odd_clients; row++) {
        int fd[2];
        char file[64];
        uv_loop_init(&loop);
        connect_pair(fd);
        open_end(SERVER, "a/host", fd[SERVER]);
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_max_proto_version(ctx, odd_clients[row].protocol);
        if (odd_clients[row].keys) {
            snprintf(file, sizeof file, "%s/cert.pem", odd_clients[row].keys);
            ck_assert_int_eq(SSL_CTX_use_certificate_chain_file(ctx, path_of(file)), 1);
            snprintf(file, sizeof file, "%s/key.pem", odd_clients[row].keys);
            ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(ctx, path_of(file), SSL_FILETYPE_PEM), 1);
        }
        SSL *ssl = SSL_new(ctx);
        SSL_set_fd(ssl, fd[CLIENT]);
        SSL_set_connect_state(ssl);
        bool over = false;
        RUN_UNTIL(&loop, (over = over || shake(ssl), over && ends[SERVER].closed));
        ck_assert(!ends[SERVER].established);
        ck_assert_msg(strstr(ends[SERVER].why, odd_clients[row].why), "row %zu: %s", row, ends[SERVER].why);
        SSL_free(ssl);
        SSL_CTX_free(ctx);
        close(fd[CLIENT]);
        end_all();
    }
}
END_TEST

/* ---- peers that stop in the middle ---- */

/* The first bytes that a client sends: its hello. */
static size_t client_hello(uint8_t *bytes, size_t size)
{
    int fd[2];
    ssize_t n = -1;
    connect_pair(fd);
    open_end(CLIENT, "a/web1", fd[CLIENT]);
    RUN_UNTIL(&loop, (n = recv(fd[SERVER], bytes, size, MSG_DONTWAIT)) > 0);
    tls_link_close(ends[CLIENT].link);
    close(ends[CLIENT].plain);
    close(fd[SERVER]);
    ends[CLIENT].link = NULL;
    return (size_t)n;
}

static const struct {
    const char *says; /* NULL: a hello, or half of one */
    int part;         /* of 2 */
    bool leaves;
    const char *why;
} halves[] = {
    {"", 0, true, "closed the connection during the TLS handshake"},
    {NULL, 1, true, "closed the connection during the TLS handshake"},
    {NULL, 2, true, "during the TLS handshake"},
    {"", 0, false, "the TLS handshake timed out"},
    {NULL, 1, false, "the TLS handshake timed out"},
    {NULL, 2, false, "the TLS handshake timed out"},
    {"\x10\0\0\0hello, no TLS here", 2, false, "the peer does not use TLS"},
};

START_TEST(half_a_handshake_ends)
{
    for (size_t row = 0; row < sizeof halves / sizeof *halves; row++) {
        int fd[2];
        uint8_t hello[4096];
        uv_loop_init(&loop);
        size_t n = client_hello(hello, sizeof hello);
        connect_pair(fd);
        open_end(SERVER, "a/host", fd[SERVER]);
        if (halves[row].says)
            memcpy(hello, halves[row].says, n = halves[row].part ? 22 : 0);
        n = n * (size_t)halves[row].part / 2;
        ck_assert_int_eq(send(fd[CLIENT], hello, n, 0), (ssize_t)n);
        loop_settle(&loop);
        if (halves[row].leaves) {
            char answer[8192];
            (void)!recv(fd[CLIENT], answer, sizeof answer, MSG_DONTWAIT);
            close(fd[CLIENT]);
        } else if (strstr(halves[row].why, "timed out")) {
            ck_assert_uint_eq(ends[SERVER].closed, 0); /* it waits */
            ck_assert_uint_eq(loop_hurry(&loop), 1);
        }
        RUN_UNTIL(&loop, ends[SERVER].closed);
        ck_assert_msg(strstr(ends[SERVER].why, halves[row].why), "row %zu: %s", row, ends[SERVER].why);
        ck_assert(!ends[SERVER].established);
        if (!halves[row].leaves)
            close(fd[CLIENT]);
        end_all();
    }
}
END_TEST

/* Once both sides know each other, no timer is left that could end the link. */
START_TEST(the_timeout_is_of_the_handshake_only)
{
    begin("a/host", "a/web1");
    RUN_UNTIL(&loop, ends[CLIENT].established && ends[SERVER].established);
    ck_assert_uint_eq(loop_hurry(&loop), 0);
    end_all();
}
END_TEST

/* ---- bytes ---- */

enum { MANY = 600000 };

static uint8_t byte_at(int side, size_t i)
{
    return (uint8_t)((i * 2654435761u >> 11) + (size_t)side);
}

/* Sends and takes what can be moved now, in pieces of odd sizes; true when all of both directions has arrived. */
static bool exchange(void)
{
    static uint8_t buf[40000];
    for (int side = 0; side < 2; side++) {
        struct end *e = &ends[side];
        size_t n = MANY - e->sent < 33333 ? MANY - e->sent : 33333;
        for (size_t i = 0; i < n; i++)
            buf[i] = byte_at(side, e->sent + i);
        ssize_t w = n ? send(e->plain, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        e->sent += w > 0 ? (size_t)w : 0;
        ssize_t r = recv(e->plain, buf, sizeof buf, MSG_DONTWAIT);
        for (ssize_t i = 0; i < r; i++)
            if (buf[i] != byte_at(!side, e->got + (size_t)i))
                ck_abort_msg("byte %zu is wrong", e->got + (size_t)i);
        e->got += r > 0 ? (size_t)r : 0;
    }
    return ends[CLIENT].got == MANY && ends[SERVER].got == MANY;
}

START_TEST(bytes_arrive_as_they_were_sent)
{
    begin("a/host", "a/web1");
    RUN_UNTIL(&loop, exchange());
    loop_settle(&loop);
    uint8_t more;
    ck_assert_int_eq(recv(ends[CLIENT].plain, &more, 1, MSG_DONTWAIT), -1);
    ck_assert_int_eq(recv(ends[SERVER].plain, &more, 1, MSG_DONTWAIT), -1);
    ck_assert_uint_eq(ends[CLIENT].closed + ends[SERVER].closed, 0);
    end_all();
}
END_TEST

/* The network carries none of the text that the user wrote. */
START_TEST(the_network_sees_no_plain_text)
{
    int fd[2], middle[2];
    char buf[20000];
    bool seen = false;
    uv_loop_init(&loop);
    connect_pair(fd);
    connect_pair(middle);
    open_end(SERVER, "a/host", middle[SERVER]);
    open_end(CLIENT, "a/web1", fd[CLIENT]);
    ck_assert_int_eq(write(ends[CLIENT].plain, "do not read this", 16), 16);
    char got[32] = "";
    RUN_UNTIL(&loop, ({
        for (int way = 0; way < 2; way++) {
            ssize_t n = recv(way ? middle[CLIENT] : fd[SERVER], buf, sizeof buf, MSG_DONTWAIT);
            seen |= n > 0 && memmem(buf, (size_t)n, "do not", 6);
            if (n > 0)
                ck_assert_int_eq(send(way ? fd[SERVER] : middle[CLIENT], buf, (size_t)n, 0), n);
        }
        recv(ends[SERVER].plain, got, sizeof got, MSG_DONTWAIT) > 0;
    }));
    ck_assert_str_eq(got, "do not read this");
    ck_assert(!seen);
    close(fd[SERVER]);
    close(middle[CLIENT]);
    end_all();
}
END_TEST

/* ---- the end ---- */

static void close_plain(int side)
{
    close(ends[side].plain);
    ends[side].plain = -1;
}

/* Each side in turn says more than the way takes at once, and goes: the other gets all of it, and then the end. */
START_TEST(last_words_arrive)
{
    static uint8_t buf[1 << 16];
    int goes = _i, stays = !_i;
    begin("a/host", "a/web1");
    RUN_UNTIL(&loop, ends[CLIENT].established && ends[SERVER].established);
    size_t said = 0, got = 0;
    for (int idle = 0; idle < 20;) {
        for (size_t i = 0; i < sizeof buf; i++)
            buf[i] = byte_at(goes, said + i);
        ssize_t n = send(ends[goes].plain, buf, sizeof buf, MSG_DONTWAIT | MSG_NOSIGNAL);
        said += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    close_plain(goes);
    ssize_t n;
    RUN_UNTIL(&loop, ({
        n = recv(ends[stays].plain, buf, sizeof buf, MSG_DONTWAIT);
        for (ssize_t i = 0; i < n; i++)
            if (buf[i] != byte_at(goes, got + (size_t)i))
                ck_abort_msg("byte %zu is wrong", got + (size_t)i);
        got += n > 0 ? (size_t)n : 0;
        n == 0;
    }));
    ck_assert_uint_eq(got, said);
    RUN_UNTIL(&loop, ends[CLIENT].closed && ends[SERVER].closed);
    ck_assert_str_eq(ends[CLIENT].why, "");
    ck_assert_str_eq(ends[SERVER].why, "");
    end_all();
}
END_TEST

/* A link that breaks without the word for it is told from one that ended. */
START_TEST(a_cut_is_no_end)
{
    int fd[2];
    uv_loop_init(&loop);
    connect_pair(fd);
    open_end(SERVER, "a/host", fd[SERVER]);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_use_certificate_chain_file(ctx, path_of("a/web1/cert.pem"));
    SSL_CTX_use_PrivateKey_file(ctx, path_of("a/web1/key.pem"), SSL_FILETYPE_PEM);
    SSL *ssl = SSL_new(ctx);
    SSL_set_fd(ssl, fd[CLIENT]);
    SSL_set_connect_state(ssl);
    RUN_UNTIL(&loop, (shake(ssl), ends[SERVER].established));
    ck_assert_str_eq(ends[SERVER].name, "web1");
    close(fd[CLIENT]);
    RUN_UNTIL(&loop, ends[SERVER].closed);
    ck_assert_str_ne(ends[SERVER].why, "");
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    end_all();
}
END_TEST

/* The host has left, and the machine takes nothing of what is on its way: that holds no memory for ever. */
START_TEST(a_server_does_not_wait_for_ever)
{
    static uint8_t zeros[1 << 16];
    begin("a/host", "a/web1");
    RUN_UNTIL(&loop, ends[CLIENT].established && ends[SERVER].established);
    for (int idle = 0; idle < 20;) {
        uv_run(&loop, UV_RUN_NOWAIT);
        idle = send(ends[SERVER].plain, zeros, sizeof zeros, MSG_DONTWAIT) > 0 ? 0 : idle + 1;
    }
    close_plain(SERVER);
    RUN_UNTIL(&loop, loop_hurry(&loop) == 1);
    RUN_UNTIL(&loop, (loop_hurry(&loop), ends[SERVER].closed));
    end_all();
}
END_TEST

/* tls_link_close() ends the other side, and calls nobody back. */
START_TEST(closed_by_its_owner)
{
    begin("a/host", "a/web1");
    RUN_UNTIL(&loop, ends[CLIENT].established && ends[SERVER].established);
    tls_link_close(ends[_i].link);
    tls_link_close(NULL);
    RUN_UNTIL(&loop, ends[!_i].closed);
    ck_assert_uint_eq(ends[_i].closed, 0);
    char c;
    ck_assert_int_eq(read(ends[_i].plain, &c, 1), 0);
    ends[_i].link = NULL;
    close(ends[_i].plain);
    end_all();
}
END_TEST

/* ---- keys that do not load ---- */

static const char *const sound[] = {"a/web1/ca.crt", "a/web1/cert.pem", "a/web1/key.pem"};

static const struct {
    int file;         /* of `sound`, to be replaced */
    const char *from; /* NULL: removed */
    mode_t mode;
    const char *why;
} broken_keys[] = {
    {2, NULL, 0, "key.pem (tracebox relay-keys makes keys): No such file"},
    {2, "a/web1/key.pem", 0644, "can be read by others: chmod 600"},
    {2, "a/web2/key.pem", 0600, "key.pem: key values mismatch"},
    {2, "a/web1/cert.pem", 0600, "key.pem: "},
    {1, NULL, 0, "cert.pem: "},
    {1, "a/web1/key.pem", 0600, "cert.pem: "},
    {1, "nameless/cert.pem", 0600, "certificate has no common name"},
    {0, NULL, 0, "ca.crt: "},
    {0, "a/web1/key.pem", 0600, "ca.crt: "},
};

START_TEST(broken_keys_are_named)
{
    for (size_t row = 0; row < sizeof broken_keys / sizeof *broken_keys; row++) {
        struct tls_keys *k = NULL;
        struct error err = {0};
        const char *const names[] = {"mix/ca.crt", "mix/cert.pem", "mix/key.pem"};
        mkdir(path_of("mix"), 0700);
        umask(0);
        for (int i = 0; i < 3; i++)
            copy_file(sound[i], names[i], 0600);
        tls_keys_free(load_keys("mix"));
        unlink(path_of(names[broken_keys[row].file]));
        if (broken_keys[row].from)
            copy_file(broken_keys[row].from, names[broken_keys[row].file], broken_keys[row].mode);
        ck_assert_int_lt(tls_keys_load(&k, path_of("mix"), &err), 0);
        ck_assert_msg(strstr(err.text, broken_keys[row].why), "row %zu: %s", row, err.text);
        ck_assert_ptr_null(k);
        for (int i = 0; i < 3; i++)
            unlink(path_of(names[i]));
    }
}
END_TEST

Suite *tls_suite(void);

Suite *tls_suite(void)
{
    Suite *s = suite_create("tls");
    TCase *t = tcase_create("links");
    tcase_add_unchecked_fixture(t, make_all_keys, remove_keys);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, each_hears_the_others_name);
    tcase_add_test(t, strangers_are_refused);
    tcase_add_test(t, odd_clients_are_refused);
    tcase_add_test(t, half_a_handshake_ends);
    tcase_add_test(t, the_timeout_is_of_the_handshake_only);
    tcase_add_test(t, bytes_arrive_as_they_were_sent);
    tcase_add_test(t, the_network_sees_no_plain_text);
    tcase_add_loop_test(t, last_words_arrive, 0, 2);
    tcase_add_test(t, a_cut_is_no_end);
    tcase_add_test(t, a_server_does_not_wait_for_ever);
    tcase_add_loop_test(t, closed_by_its_owner, 0, 2);
    tcase_add_test(t, broken_keys_are_named);
    suite_add_tcase(s, t);
    return s;
}
