#!/bin/sh
# The packages as a fresh system meets them: made, installed into an empty root by dpkg, used, and removed without a trace.
# packages.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1 build=$2
if ! command -v dpkg-shlibdeps >/dev/null || ! command -v file >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "skipped: needs dpkg-dev, file and root"
    exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/debs" "$dir/root/var/lib/dpkg/info" "$dir/root/var/lib/dpkg/updates" "$dir/root/var/lib/dpkg/triggers"
touch "$dir/root/var/lib/dpkg/status"
(cd "$build" && cpack -G DEB -B "$dir/debs" >"$dir/cpack.log" 2>&1) || { cat "$dir/cpack.log"; exit 1; }

# Their dependencies are this machine's: what they are is in the packages, and is checked here.
for package in meridian-tools meridian-record libmeridian0 libmeridian-dev python3-meridian; do
    deb=$(ls "$dir/debs/${package}"_*.deb)
    [ "$(dpkg-deb -f "$deb" Package)" = "$package" ]
    case "$package $(dpkg-deb -f "$deb" Depends)" in
    libmeridian-dev*"libmeridian0 (="* | python3-meridian*"libmeridian0 (="* | meridian-*"libc6 (>="* | libmeridian0*"libsqlite3-0"*) ;;
    *) echo "$package: its dependencies are $(dpkg-deb -f "$deb" Depends)"; exit 1 ;;
    esac
    case "$package $(dpkg-deb -f "$deb" Depends)" in # loaded when it is needed: nothing in the programs names it
    meridian-tools*libarchive13* | libmeridian0*libarchive13* | meridian-record* | libmeridian-dev* | python3-meridian*) ;;
    *) echo "$package: libarchive is not among its dependencies"; exit 1 ;;
    esac
done
root=$dir/root
dpkg="dpkg --root=$root --force-depends --force-script-chrootless --log=/dev/null"
$dpkg -i "$dir"/debs/*.deb >"$dir/dpkg.log" 2>&1 || { cat "$dir/dpkg.log"; exit 1; }

trace=$source/test/data/linux-sched.pftrace
PATH=$root/usr/bin:$PATH
[ "$(command -v tp_shell)" = "$root/usr/bin/tp_shell" ]
tp_shell --version >/dev/null
tracebox --version >/dev/null
n=$(tp_shell query "$trace" "select count(*) from sched" 2>/dev/null | tail -n 1)
[ "$n" -gt 1000 ]
tp_shell check "$trace" >/dev/null
[ "$(LD_LIBRARY_PATH=$root/usr/lib PYTHONPATH=$root/usr/lib/python3/dist-packages /usr/bin/python3 -c "
from meridian import Trace
print(next(Trace('$trace').query('select count(*) as n from sched')).n)")" = "$n" ]
grep -q "^ExecStart=/usr/bin/tracebox traced" "$root/usr/lib/systemd/system/meridian-traced.service"
for page in tp_shell tracebox; do
    grep -q "^.TH" "$root/usr/share/man/man1/$page.1"
    bash -n "$root/usr/share/bash-completion/completions/$page"
    [ -s "$root/usr/share/zsh/site-functions/_$page" ] && [ -s "$root/usr/share/fish/vendor_completions.d/$page.fish" ]
done

$dpkg --purge meridian-tools meridian-record libmeridian-dev python3-meridian libmeridian0 >"$dir/dpkg.log" 2>&1 ||
    { cat "$dir/dpkg.log"; exit 1; }
left=$(find "$root" -path "$root/var/lib/dpkg" -prune -o ! -type d -print)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
