#!/bin/sh
# make-tarball.sh BUILD_DIR: the recorder as one file for machines without our packages: a static tracebox with its pages
# and units, to be unpacked with tar -C / -xzf. Prints its path.
set -eu
build=$(cd "$1" && pwd)
cmake --build "$build" --target all tracebox-static >&2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
DESTDIR=$stage cmake --install "$build" --prefix /usr/local --component record >&2
install -m 755 "$build/tracebox-static" "$stage/usr/local/bin/tracebox"
version=$("$build/tracebox-static" --version | sed -n '1s/^[^0-9]*\([0-9][0-9.]*\).*/\1/p')
out=$build/meridian-record-$version-linux-$(uname -m).tar.gz
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -cf - usr | gzip -9n >"$out"
echo "$out"
