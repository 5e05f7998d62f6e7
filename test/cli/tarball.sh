#!/bin/sh
# The tarball on a machine that has nothing else: tarball.sh SOURCE_DIR BUILD_DIR. And the Dockerfile: what it copies and calls
# is there.
set -eu
source=$1 build=$2
for path in $(sed -n 's/.*&& \(scripts\/[a-z-]*\.sh\).*/\1/p' "$source/Dockerfile"); do
    [ -x "$source/$path" ] || { echo "Dockerfile: no $path"; exit 1; }
done
for target in $(grep -o 'make [a-z]*' "$source/Dockerfile" | cut -d' ' -f2); do
    grep -q "^$target:\|^$target .*:\|[a-z] $target.*:" "$source/Makefile" || { echo "Dockerfile: no make $target"; exit 1; }
done
if [ "$(id -u)" != 0 ]; then
    echo "skipped: needs root (chroot)"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tarball=$("$source/scripts/make-tarball.sh" "$build" 2>"$dir/log") || { cat "$dir/log"; exit 1; }
mkdir "$dir/root"
tar -C "$dir/root" -xzf "$tarball"
in_root() { chroot "$dir/root" /usr/local/bin/tracebox "$@"; }
in_root --version | grep -q "^Meridian v"
in_root --help | grep -q "tracebox record"
[ "$("$build/tracebox" --version)" = "$(in_root --version)" ]
grep -q "^ExecStart=/usr/local/bin/tracebox traced$" "$dir/root/usr/local/lib/systemd/system/meridian-traced.service"
again=$(sha256sum <"$tarball")
"$source/scripts/make-tarball.sh" "$build" >/dev/null 2>&1
[ "$(sha256sum <"$tarball")" = "$again" ] || { echo "the tarball is another one each time"; exit 1; }
