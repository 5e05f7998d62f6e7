#!/bin/sh
# Installs what the build needs, on Debian 12 and Ubuntu 24.04 or newer; with --tests also what the end-to-end tests need
# (guests under emulation, network namespaces, other readers of CTF). Does nothing when all is there.
set -eu

packages="gcc libc6-dev make cmake ninja-build pkg-config python3
zlib1g-dev libzstd-dev libsqlite3-dev libuv1-dev libprotobuf-c-dev protobuf-c-compiler libedit-dev libarchive-dev libexpat1-dev libwslay-dev nettle-dev liblzma-dev libdw-dev libdebuginfod-dev libiberty-dev
libssl-dev check"
if [ "${1:-}" = --tests ]; then
    packages="$packages dpkg-dev file iproute2 openssh-client openssh-server tmux python3-markdown chromium babeltrace babeltrace2 libdw-dev"
    if [ "$(uname -m)" = x86_64 ]; then
        packages="$packages qemu-system-x86 busybox-static cpio xz-utils"
    fi
    if apt-cache show clickhouse-server >/dev/null 2>&1; then # Debian 12 has it, Ubuntu 24.04 has not
        packages="$packages clickhouse-server"
    fi
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    echo "install-deps: this is no Debian or Ubuntu; install the like of:" $packages >&2
    exit 0
fi

missing=""
for p in $packages; do
    case "$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)" in
    *"install ok installed"*) ;;
    *) missing="$missing $p" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
else
    echo "install-deps: neither root nor sudo; ask somebody to install:$missing" >&2
    exit 1
fi

echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0"
$apt update </dev/null
# shellcheck disable=SC2086
$apt install -y --no-install-recommends $missing </dev/null
