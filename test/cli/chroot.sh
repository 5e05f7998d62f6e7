#!/bin/sh
# A bare Debian as a new user meets it: our packages are installed with their dependencies, the commands of the README's first
# look are typed as they stand, the packages are removed: nothing is left. chroot.sh SOURCE_DIR BUILD_DIR CACHE_DIR
set -eu
source=$1 build=$2 cache=$3
if [ "$(id -u)" != 0 ] || ! command -v dpkg-shlibdeps >/dev/null || ! command -v file >/dev/null || ! unshare -m true 2>/dev/null; then
    echo "skipped: needs root, dpkg-dev, file and mount namespaces"
    exit 77
fi
if [ -z "${CHROOT_NAMESPACE:-}" ]; then # what is mounted goes with us
    CHROOT_NAMESPACE=1 exec unshare -m --propagation private "$0" "$@"
fi
dir=$(mktemp -d)
trap 'umount -R "$dir/root/sys" "$dir/root/proc" 2>/dev/null; rm -rf --one-file-system "$dir"' EXIT

# The base system, made once.
mkdir -p "$cache"
base=$cache/debian-base.tar
if [ ! -f "$base" ]; then
    (cd "$dir" && apt-get -q update && apt-get -q download debootstrap) >"$dir/log" 2>&1 ||
        { cat "$dir/log"; echo "skipped: no mirror of Debian can be reached"; exit 77; }
    dpkg -x "$dir"/debootstrap_*.deb "$dir/tool"
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    DEBOOTSTRAP_DIR=$dir/tool/usr/share/debootstrap "$dir/tool/usr/sbin/debootstrap" --variant=minbase "$codename" "$dir/root" >"$dir/log" 2>&1 ||
        { tail -20 "$dir/log"; echo "skipped: no bare system of $codename can be made here"; exit 77; }
    rm -rf "$dir/root/var/cache/apt/archives"/*.deb
    tar -C "$dir/root" --one-file-system -cf "$base.new" .
    mv "$base.new" "$base"
    rm -rf "$dir/root"
fi
root=$dir/root
mkdir "$root"
tar -C "$root" -xf "$base"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp -r /etc/apt/sources.list.d "$root/etc/apt/" 2>/dev/null || true
cp /etc/apt/sources.list "$root/etc/apt/" 2>/dev/null || true
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"

mkdir "$root/debs" "$root/work"
(cd "$build" && cpack -G DEB -B "$root/debs" >"$dir/log" 2>&1) || { cat "$dir/log"; exit 1; }
rm -rf "$root/debs/_CPack_Packages"
mkdir -p "$root/work/test"
cp -r "$source/test/data" "$root/work/test/data"
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
files() { (cd "$root" && find . -xdev \( -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o -path ./work -o -path ./tmp \) -prune -o -print | sort); }
in_root apt-get -q update >"$dir/log" 2>&1 || { cat "$dir/log"; echo "skipped: no mirror of Debian can be reached"; exit 77; }
files >"$dir/before"
in_root sh -c 'apt-get -q install -y --no-install-recommends /debs/*.deb' >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }

n=0
sed -n '/^## A first look/,/^## /p' "$source/README.md" | sed -n '/^```sh/,/^```/p' | grep -v '^```' | sed 's/  *#.*//' >"$dir/commands"
while read -r command <&3; do
    case $command in
    '' | *--machine*) continue ;; # other machines are the tests' of tracebox record
    *"server http"*) command="timeout 2 $command" ;;
    esac
    n=$((n + 1))
    status=0
    in_root sh -c "cd /work && $command" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
    case "$command $status" in
    timeout*124) grep -q "Serving at" "$dir/err" || { cat "$dir/err"; exit 1; } ;;
    *" 0") ;;
    *) echo "$command: status $status"; cat "$dir/out" "$dir/err"; exit 1 ;;
    esac
done 3<"$dir/commands"
[ "$n" -ge 10 ] || { echo "the README has $n commands"; exit 1; }
[ -s "$root/work/trace.pftrace" ] && [ -s "$root/work/trace.db" ] && [ -s "$root/work/merged.pftrace" ]

# Debian's Python, as a user has it: nothing is set.
cat >"$root/work/program.py" <<'PROGRAM'
import sys
from perfetto.trace_processor import TraceProcessor
with TraceProcessor(trace=sys.argv[1]) as tp:
    print(next(tp.query("select count(*) > 1000 as many from sched")).many)
PROGRAM
in_root sh -c "cd /work && python3 -m meridian.as_perfetto program.py test/data/linux-sched.pftrace" >"$dir/out" 2>"$dir/err" ||
    { cat "$dir/err"; exit 1; }
[ "$(cat "$dir/out")" = 1 ] || { echo "the Python package says:"; cat "$dir/out" "$dir/err"; exit 1; }

in_root apt-get -q purge -y meridian-tools meridian-record libmeridian-dev python3-meridian libmeridian0 >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
in_root apt-get -q autoremove -y --purge >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
files >"$dir/after"
left=$(comm -13 "$dir/before" "$dir/after" | grep -iv '^\./etc/\(ld.so.cache\|group-\?\|gshadow-\?\)$' || true)
[ -z "$left" ] || { echo "left behind:"; echo "$left"; exit 1; }
echo "$n commands of the README"
