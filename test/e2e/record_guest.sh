#!/bin/bash
# tracebox record with another kernel at the far end of ssh: a guest that has an sshd and no tracebox.
#
#   record_guest.sh TRACEBOX TP_SHELL TRACEBOX_STATIC CACHE_DIR
set -u
here=$(cd "$(dirname "$0")" && pwd)
tracebox=$1 tp_shell=$2 static=$3 cache=$4
. "$here/guest/guest.sh"

guest_need || exit $?
[ "$(id -u)" = 0 ] || { echo "skipped: needs root (ftrace)"; exit 77; }
[ -x /usr/sbin/sshd ] || { echo "skipped: no sshd (scripts/install-deps.sh --tests installs it)"; exit 77; }
[ -x "$static" ] || { echo "skipped: no static tracebox here"; exit 77; }
if [ -z "${IN_NAMESPACE:-}" ]; then
	unshare -n -m true 2>/dev/null || { echo "skipped: no namespaces here"; exit 77; }
	guest_image "$cache" || { echo "skipped: the guest's kernel package could not be fetched"; exit 77; }
	IN_NAMESPACE=1 exec unshare -n -m "$0" "$@"
fi
ip link set lo up
work=$(mktemp -d "$cache/record.XXXXXX")
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing || { echo "skipped: no tracefs"; exit 77; }
trap 'guest_stop "$cache" sshd; wait 2>/dev/null; rm -rf "$work"' EXIT
fail() {
	echo "FAILED: $*"
	tail -n 15 "$work"/*.log "$cache/sshd.log"
	exit 1
}

for key in host_key user_key; do ssh-keygen -q -t ed25519 -N '' -f "$work/$key"; done
cp "$work/user_key.pub" "$work/authorized_keys"
cat >"$work/sshd_config" <<'E2'
HostKey /host_key
AuthorizedKeysFile /authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
SetEnv PATH=/bin
E2
cat >"$work/job" <<'E2'
printf 'root:x:0:0::/:/bin/sh\nsshd:x:100:100::/run/sshd:/bin/false\n' >/etc/passwd
printf 'root:x:0:\nsshd:x:100:\n' >/etc/group
mkdir -p /run/sshd /dev/pts; chmod 600 /host_key
/bin/sshd -D -e -f /sshd_config
E2
GUEST_NET="-nic user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:2222-:22" guest_start "$cache" sshd "$work/job" \
	/usr/sbin/sshd "$work/host_key" "$work/authorized_keys" "$work/sshd_config"
ssh="ssh -p 2222 -i $work/user_key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=10"
for i in $(seq 60); do $ssh root@127.0.0.1 true 2>/dev/null && break; sleep 0.5; done
[ "$i" -lt 60 ] || fail "the guest's sshd does not answer"

"$tracebox" record --machine root@127.0.0.1 --ssh "$ssh" --binary "$static" -t 2s -o "$work/trace.pftrace" sched/sched_switch \
	2>"$work/record.log" || fail "recording"
"$tp_shell" query "$work/trace.pftrace" "SELECT m.id, m.release, count(*) AS events, clock_error_ns((SELECT start_ts FROM trace_bounds) + 1000000000, m.id) AS clock_error
	FROM machine m JOIN cpu ON cpu.machine_id = m.id JOIN ftrace_event f USING (ucpu) GROUP BY m.id" 2>/dev/null | tr -d '"' | tail -n +2 | tee "$work/machines.csv"
[ "$(awk -F, '$3 > 10' "$work/machines.csv" | wc -l)" = 2 ] || fail "not both machines have events"
[ "$(cut -d, -f2 "$work/machines.csv" | sort -u | wc -l)" = 2 ] || fail "not two kernels"
left=$($ssh root@127.0.0.1 'ls -d /tmp/tracebox* 2>/dev/null; ps | grep -v grep | grep traced; cat /sys/kernel/tracing/events/sched/sched_switch/enable')
[ "$left" = 0 ] || fail "left behind on the guest: $left"
echo "recorded a guest over ssh: passed"
