# Boots small virtual machines with a kernel of their own, for tests that need two kernels. Sourced by the tests.
#
#   guest_need                 0 when guests can be booted here; else prints the reason and returns 77 (ctest: skipped)
#   guest_image DIR            kernel and base files under DIR (kept between runs)
#   guest_start DIR NAME JOB [FILE...]   boots NAME; JOB (a shell script) and FILEs are in its /, its console in DIR/NAME.log:
#       guest_initrd DIR NAME JOB [FILE...]   makes what it boots from
#       guest_run DIR NAME                    … and boots it; does not return
#   guest_wait NAME SECONDS    until it has powered off
#   guest_stop NAME            at once
#   guest_file DIR NAME FILE   copies out what the job left as /out/FILE (after guest_wait)
#
# The kernel is Debian's cloud kernel, unpacked from its package, under emulation: no KVM is needed. A guest reaches the
# host's loopback as 10.0.2.2. GUEST_QEMU adds arguments (devices, networks).

guest_kernel_package() {
	apt-cache search --names-only '^linux-image-6\.[0-9]+\.[0-9]+-[0-9]+-cloud-amd64$' 2>/dev/null | sort -V | tail -n 1 | cut -d' ' -f1
}

guest_need() {
	local tool
	[ "$(uname -m)" = x86_64 ] || { echo "skipped: guests are x86-64 only"; return 77; }
	for tool in qemu-system-x86_64 busybox cpio dpkg-deb apt-get; do
		command -v $tool >/dev/null || { echo "skipped: no $tool (scripts/install-deps.sh --tests installs it)"; return 77; }
	done
	[ -n "$(guest_kernel_package)" ] || [ "$(id -u)" != 0 ] || apt-get update >/dev/null 2>&1 # no package lists yet
	[ -n "$(guest_kernel_package)" ] || [ -n "${GUEST_KERNEL_DEB:-}" ] || { echo "skipped: this distribution has no cloud kernel package"; return 77; }
}

# Modules in the order in which they have to be loaded; those that a kernel has built in are simply not there.
guest_modules="kernel/drivers/virtio/virtio kernel/drivers/virtio/virtio_ring kernel/drivers/virtio/virtio_pci_modern_dev
kernel/drivers/virtio/virtio_pci_legacy_dev kernel/drivers/virtio/virtio_pci kernel/net/core/failover
kernel/drivers/net/net_failover kernel/drivers/net/virtio_net kernel/drivers/block/virtio_blk"

guest_image() {
	local dir=$1 module from
	mkdir -p "$dir"
	(
		flock 9
		if [ ! -e "$dir/image.done" ]; then
			rm -rf "$dir/deb" "$dir/base"
			mkdir -p "$dir/deb" "$dir/base/bin" "$dir/base/modules"
			if [ -n "${GUEST_KERNEL_DEB:-}" ]; then cp "$GUEST_KERNEL_DEB" "$dir/deb/"
			else (cd "$dir/deb" && apt-get download "$(guest_kernel_package)" >/dev/null 2>&1) || { echo "cannot download the kernel package"; exit 1; }
			fi
			dpkg-deb -x "$dir"/deb/*.deb "$dir/deb"
			cp "$dir"/deb/boot/vmlinuz-* "$dir/vmlinuz"
			local order=0
			for module in $guest_modules; do
				order=$((order + 1))
				from=$(echo "$dir"/deb/lib/modules/*/"$module".ko*)
				case $from in
				*.ko) cp "$from" "$dir/base/modules/$(printf %02d $order)-$(basename "$from")" ;;
				*.ko.xz) xz -dc "$from" >"$dir/base/modules/$(printf %02d $order)-$(basename "${from%.xz}")" ;;
				esac
			done
			cp "$(command -v busybox)" "$dir/base/bin/busybox"
			rm -rf "$dir/deb"
			touch "$dir/image.done"
		fi
	) 9>"$dir/.lock"
}

# Copies a program and the libraries it needs.
guest_program() {
	local root=$1 program=$2 lib
	cp "$program" "$root/bin/"
	strip --strip-debug "$root/bin/$(basename "$program")" 2>/dev/null # of a sanitized program this is most
	for lib in $(ldd "$program" 2>/dev/null | grep -o '/[^ ]*'); do
		mkdir -p "$root$(dirname "$lib")"
		cp -L "$lib" "$root$lib"
	done
}

guest_start() {
	guest_initrd "$@"
	guest_run "$1" "$2" &
	echo $! >"$1/$2.pid"
}

guest_initrd() {
	local dir=$1 name=$2 job=$3 root file
	shift 3
	root=$dir/$name.root
	rm -rf "$root"
	mkdir -p "$root"
	cp -r "$dir/base/." "$root"
	mkdir -p "$root"/{proc,sys,dev,tmp,run,out,etc}
	cp "$job" "$root/job"
	for file in "$@"; do
		if [ -x "$file" ]; then guest_program "$root" "$file"; else cp "$file" "$root/"; fi
	done
	cat >"$root/init" <<-'INIT'
	#!/bin/busybox sh
	/bin/busybox --install -s /bin
	export PATH=/bin HOME=/
	mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
	mount -t tracefs none /sys/kernel/tracing 2>/dev/null
	for pass in 1 2; do for m in /modules/*; do insmod "$m" 2>/dev/null; done; done
	ip link set lo up; hostname guest
	if [ -d /sys/class/net/eth0 ]; then
		ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2
	fi
	sh /job >/out/job.log 2>&1; echo $? >/out/status
	[ -b /dev/vda ] && tar cf /dev/vda -C /out .
	[ -b /dev/vda ] || { echo "no disk; modules:"; lsmod; dmesg | tail -n 20; }
	sync; poweroff -f
	INIT
	sed -i 's/^\t*//' "$root/init"
	chmod +x "$root/init"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/$name.initrd"
	rm -rf "$root"
}

# GUEST_INITRD: another guest's; GUEST_NET, GUEST_MONITOR, GUEST_QEMU: arguments for QEMU.
guest_run() {
	local dir=$1 name=$2
	rm -f "$dir/$name.disk" "$dir/$name.log"
	truncate -s 64M "$dir/$name.disk"
	# shellcheck disable=SC2086
	exec qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 768 -smp "${GUEST_CPUS:-2}" -kernel "$dir/vmlinuz" \
		-initrd "${GUEST_INITRD:-$dir/$name.initrd}" -append "console=ttyS0 quiet panic=-1 no_timer_check" -display none \
		-monitor "${GUEST_MONITOR:-none}" -serial "file:$dir/$name.log" -no-reboot \
		-drive "file=$dir/$name.disk,format=raw,if=virtio" ${GUEST_NET--nic user,model=virtio-net-pci} ${GUEST_QEMU:-}
}

guest_wait() {
	local dir=$1 name=$2 seconds=$3 pid
	pid=$(cat "$dir/$name.pid")
	while [ "$seconds" -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
		sleep 1
		seconds=$((seconds - 1))
	done
	! kill -0 "$pid" 2>/dev/null || { echo "guest $name is still up"; guest_stop "$dir" "$name"; return 1; }
	wait "$pid" 2>/dev/null || true
	guest_file "$dir" "$name" status && [ "$(cat "$dir/$name.out/status")" = 0 ] || {
		echo "guest $name failed:"
		guest_file "$dir" "$name" job.log && cat "$dir/$name.out/job.log"
		tail -n 20 "$dir/$name.log"
		return 1
	}
}

guest_stop() {
	kill -9 "$(cat "$1/$2.pid")" 2>/dev/null || true
}

guest_file() {
	mkdir -p "$1/$2.out"
	tar xf "$1/$2.disk" -C "$1/$2.out" "./$3" 2>/dev/null
}
