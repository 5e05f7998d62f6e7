/* What the path of a control group says of a container and a unit of systemd.
 *
 * Engines of containers name a group by the 64 hexadecimal digits of the container's id, alone (/docker/ID) or, where
 * systemd keeps the groups, with a word of their own before it (docker-ID.scope, cri-containerd-ID.scope,
 * crio-ID.scope, libpod-ID.scope; containerd under systemd: SLICE:cri-containerd:ID). Kubernetes has a group for each
 * pod above it: podUID, or kubepods-...-podUID.slice with _ for -. */
#ifndef MERIDIAN_IMPORTER_SYSTEM_CONTAINER_H
#define MERIDIAN_IMPORTER_SYSTEM_CONTAINER_H

#include "base/slice.h"

enum { POD_UID_BYTES = 36 };

struct container {
    struct slice id;      /* of the innermost container; empty: none. A view of the path, as is unit. */
    struct slice runtime; /* docker, containerd, cri-o, podman, lxc, systemd-nspawn; empty: the path does not tell */
    struct slice pod;     /* UID of the pod, a view of pod_text */
    struct slice unit;    /* the innermost unit of systemd that is no slice */
    char pod_text[POD_UID_BYTES];
};

/* Fills `c`, which must not be moved while its pod is used. */
void container_of_cgroup(struct slice path, struct container *c);

#endif
