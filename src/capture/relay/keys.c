/* The relay-keys applet: a certificate authority in a directory, and certificates for the host and for machines. */
#include "capture/common/applet.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DAYS = 36500 };

struct authority {
    X509 *cert;
    EVP_PKEY *key;
};

enum role { ROLE_CA, ROLE_HOST, ROLE_MACHINE };

static const struct {
    const char *constraints, *usage, *extended;
} roles[] = {
    [ROLE_CA] = {"critical,CA:TRUE", "critical,keyCertSign,cRLSign", NULL},
    [ROLE_HOST] = {"critical,CA:FALSE", "critical,digitalSignature", "serverAuth"},
    [ROLE_MACHINE] = {"critical,CA:FALSE", "critical,digitalSignature", "clientAuth"}, /* cannot pose as the host */
};

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    if (!value)
        return true;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = x && X509_add_ext(cert, x, -1) == 1;
    X509_EXTENSION_free(x);
    return ok;
}

/* A certificate for `key`, signed by `by` (for ROLE_CA by itself). */
static X509 *make_certificate(const char *name, EVP_PKEY *key, enum role role, const struct authority *by, int days)
{
    uint64_t serial = 0;
    X509 *cert = X509_new();
    X509 *issuer = role == ROLE_CA ? cert : by->cert;
    bool ok = cert && RAND_bytes((unsigned char *)&serial, sizeof serial) == 1 && X509_set_version(cert, 2) == 1 &&
              ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1 | 1) == 1 &&
              X509_gmtime_adj(X509_getm_notBefore(cert), -86400) && /* clocks differ: that is what this is for */
              X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, NULL) && X509_set_pubkey(cert, key) == 1 &&
              X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                         -1, -1, 0) == 1 &&
              X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
              add_extension(cert, issuer, NID_basic_constraints, roles[role].constraints) &&
              add_extension(cert, issuer, NID_key_usage, roles[role].usage) &&
              add_extension(cert, issuer, NID_ext_key_usage, roles[role].extended) &&
              add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
              add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always") &&
              X509_sign(cert, role == ROLE_CA ? key : by->key, EVP_sha256()) > 0;
    if (ok)
        return cert;
    X509_free(cert);
    return NULL;
}

static FILE *create(const char *path, mode_t mode, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        error_set_errno(err, errno, "%s", path);
    return f;
}

static int save(const char *dir, const char *cert_name, const char *key_name, X509 *cert, EVP_PKEY *key,
                struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, key_name);
    FILE *f = create(path, 0600, err);
    bool ok = f && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1;
    ok = f && fclose(f) == 0 && ok;
    if (!ok)
        return err->code ? err->code : error_set(err, -MRD_EIO, "%s cannot be written", path);
    snprintf(path, sizeof path, "%s/%s", dir, cert_name);
    f = create(path, 0644, err);
    ok = f && PEM_write_X509(f, cert) == 1;
    ok = f && fclose(f) == 0 && ok;
    return ok ? 0 : err->code ? err->code : error_set(err, -MRD_EIO, "%s cannot be written", path);
}

static int load_authority(const char *dir, struct authority *a, struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/ca.crt", dir);
    FILE *f = fopen(path, "r");
    a->cert = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "%s/ca.key", dir);
    f = a->cert ? fopen(path, "r") : NULL;
    a->key = f ? PEM_read_PrivateKey(f, NULL, NULL, NULL) : NULL;
    if (f)
        fclose(f);
    return a->key ? 0 : error_set(err, -MRD_EINVALID, "%s: cannot read the certificate authority", dir);
}

static int make_authority(const char *dir, struct authority *a, int days, struct error *err)
{
    a->key = EVP_EC_gen("P-256");
    a->cert = a->key ? make_certificate("tracebox relay authority", a->key, ROLE_CA, NULL, days) : NULL;
    return a->cert ? save(dir, "ca.crt", "ca.key", a->cert, a->key, err)
                   : error_set(err, -MRD_EIO, "cannot create a key");
}

/* DIR/NAME with everything that machine needs. */
static int make_keys(const char *dir, const char *name, enum role role, const struct authority *by, int days,
                     struct error *err)
{
    char sub[4096], path[4200];
    if (!*name || strchr(name, '/') || name[0] == '.' || strlen(name) > 64)
        return error_set(err, -MRD_EINVALID, "\"%s\" is not a valid machine name", name);
    snprintf(sub, sizeof sub, "%s/%s", dir, name);
    if (mkdir(sub, 0700) != 0)
        return error_set_errno(err, errno, "%s", sub);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key ? make_certificate(name, key, role, by, days) : NULL;
    int rc = cert ? save(sub, "cert.pem", "key.pem", cert, key, err)
                  : error_set(err, -MRD_EIO, "cannot create a certificate");
    X509_free(cert);
    EVP_PKEY_free(key);
    snprintf(path, sizeof path, "%s/ca.crt", sub);
    FILE *f = rc ? NULL : create(path, 0644, err);
    bool ok = f && PEM_write_X509(f, by->cert) == 1;
    ok = f && fclose(f) == 0 && ok;
    if (!rc && !ok)
        rc = err->code ? err->code : error_set(err, -MRD_EIO, "%s cannot be written", path);
    if (!rc)
        printf("%s\n", sub);
    return rc;
}

struct keys_flags {
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "capture/relay/keys_flags.def"
#undef FLAG
    struct text_list dirs;
};

static const struct flag flag_rows[] = {
#define FLAG(...) FLAG_ROW(struct keys_flags, __VA_ARGS__),
#include "capture/relay/keys_flags.def"
#undef FLAG
};
static const struct flag_table flags = {flag_rows, sizeof flag_rows / sizeof *flag_rows,
                                        offsetof(struct keys_flags, dirs)};

static int make_all(const struct keys_flags *f)
{
    const char *dir = f->dirs.p[0];
    int days = f->days.given ? (int)f->days.value : 3650;
    char ca[4096];
    struct error err = {0};
    struct authority a = {0};
    int rc = mkdir(dir, 0700) != 0 && errno != EEXIST ? error_set_errno(&err, errno, "%s", dir) : 0;
    snprintf(ca, sizeof ca, "%.4000s/ca.crt", dir);
    bool is_new = access(ca, F_OK) != 0;
    if (!rc)
        rc = is_new ? make_authority(dir, &a, days, &err) : load_authority(dir, &a, &err);
    if (!rc && is_new)
        rc = make_keys(dir, "host", ROLE_HOST, &a, days, &err);
    for (size_t i = 0; i < f->machines.n && !rc; i++)
        rc = make_keys(dir, f->machines.p[i], ROLE_MACHINE, &a, days, &err);
    if (rc)
        fprintf(stderr, "relay-keys: %s\n", err.text);
    X509_free(a.cert);
    EVP_PKEY_free(a.key);
    return rc ? 1 : 0;
}

static int run_flags(const struct keys_flags *f)
{
    if (applet_tells("relay-keys", &flags, f->help, f->version))
        return 0;
    if (f->days.given && (f->days.value < 1 || f->days.value > MAX_DAYS)) {
        fprintf(stderr, "relay-keys: --days: use a number from 1 to %d\n", MAX_DAYS);
        return 1;
    }
    if (f->dirs.n != 1) {
        fprintf(stderr, "relay-keys: give one directory for the keys\n");
        applet_usage("relay-keys");
        return 1;
    }
    return make_all(f);
}

int relay_keys_main(int argc, char **argv)
{
    struct keys_flags f = {0};
    int rc = applet_flags("relay-keys", &flags, &f, argc, argv) ? run_flags(&f) : 1;
    flags_free(&flags, &f);
    return rc;
}
