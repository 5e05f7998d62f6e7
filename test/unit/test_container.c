/* Tests what paths of control groups say of containers. */
#include "importer/system/container.h"

#include <check.h>

#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID  "8f0a7c9e-1b2d-4e3f-a0b1-c2d3e4f50617"
#define UID_ "8f0a7c9e_1b2d_4e3f_a0b1_c2d3e4f50617"

static const struct {
    const char *path, *id, *runtime, *pod, *unit;
} cases[] = {
    {"", "", "", "", ""},
    {"/", "", "", "", ""},
    {"/init.scope", "", "", "", "init.scope"},
    {"/system.slice/nginx.service", "", "", "", "nginx.service"},
    {"/user.slice/user-1000.slice/user@1000.service/app.slice/foot.service", "", "", "", "foot.service"},
    {"/user.slice/user-1000.slice", "", "", "", ""},
    {"/docker/" ID, ID, "docker", "", ""},
    {"/docker/" ID "/inner", ID, "docker", "", ""},
    {"/system.slice/docker-" ID ".scope", ID, "docker", "", "docker-" ID ".scope"},
    {"/machine.slice/libpod-" ID ".scope/container", ID, "podman", "", "libpod-" ID ".scope"},
    {"/libpod_parent/libpod-" ID, ID, "podman", "", ""},
    {"/machine.slice/libpod-conmon-" ID ".scope", "", "", "", "libpod-conmon-" ID ".scope"},
    {"/crio-conmon-" ID ".scope", "", "", "", "crio-conmon-" ID ".scope"},
    {"/kubepods/besteffort/pod" UID "/" ID, ID, "", UID, ""},
    {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope", ID,
     "containerd", UID, "cri-containerd-" ID ".scope"},
    {"/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope", ID, "cri-o", UID, "crio-" ID ".scope"},
    {"/system.slice/containerd.service/kubepods-besteffort-pod" UID_ ".slice:cri-containerd:" ID, ID, "containerd", UID,
     "containerd.service"},
    {"/kubepods/pod" UID, "", "", UID, ""},
    {"/docker/" ID "/docker/" ID, ID, "docker", "", ""},
    {"/lxc/web", "web", "lxc", "", ""},
    {"/lxc.payload.db", "db", "lxc", "", ""},
    {"/lxc.monitor.db", "", "", "", ""},
    {"/machine.slice/systemd-nspawn@build.service/payload", "build", "systemd-nspawn", "",
     "systemd-nspawn@build.service"},
    /* what only looks like it */
    {"/docker/" ID "0", "", "", "", ""},
    {"/docker/0123456789abcdef", "", "", "", ""},
    {"/docker/"
     "G123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
     "", "", "", ""},
    {"/notdocker-" ID ".scope", "", "", "", "notdocker-" ID ".scope"},
    {"/tripod" UID, "", "", "", ""},
    {"/pod" UID "x", "", "", "", ""},
    {"/pod8f0a7c9e1b2d-4e3f-a0b1-c2d3e4f506170000", "", "", "", ""},
    {"/.service", "", "", "", ""},
    {"/systemd-nspawn@.service", "", "", "", "systemd-nspawn@.service"},
    {"//lxc.payload./x", "", "", "", ""},
};

START_TEST(paths_are_read)
{
    struct container c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        container_of_cgroup(slice_of(cases[i].path, strlen(cases[i].path)), &c);
        const struct {
            const char *want;
            struct slice got;
        } parts[] = {
            {cases[i].id, c.id}, {cases[i].runtime, c.runtime}, {cases[i].pod, c.pod}, {cases[i].unit, c.unit}};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            ck_assert_msg(slice_eq_str(parts[k].got, parts[k].want), "%s: part %zu is '%.*s', not '%s'", cases[i].path,
                          k, (int)parts[k].got.len, (const char *)parts[k].got.p, parts[k].want);
    }
}
END_TEST

START_TEST(any_bytes_are_taken)
{
    static const char bytes[] = "/:-.@sp0lxcd" ID UID;
    char path[200];
    struct container c;
    for (unsigned seed = 1; seed < 20000; seed++) {
        unsigned x = seed;
        size_t n = seed % sizeof path;
        for (size_t i = 0; i < n; i++) {
            x = x * 1664525 + 1013904223;
            path[i] = bytes[(x >> 16) % (sizeof bytes - 1)];
        }
        container_of_cgroup(slice_of(path, n), &c);
        ck_assert(c.id.len <= n && c.unit.len <= n);
    }
}
END_TEST

Suite *container_suite(void);
Suite *container_suite(void)
{
    Suite *s = suite_create("container");
    TCase *t = tcase_create("core");
    tcase_add_test(t, paths_are_read);
    tcase_add_test(t, any_bytes_are_taken);
    suite_add_tcase(s, t);
    return s;
}
