#!/bin/sh
# Says why a real node cannot run on this machine, or nothing: control groups, overlays, and rules for packets.
set -eu
group=kube-nvr-probe-$$
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/memory; do
  if [ -e "$hierarchy/cgroup.procs" ]; then
    mkdir "$hierarchy/$group"
    rmdir "$hierarchy/$group"
  fi
done
[ -e /sys/fs/cgroup/cgroup.controllers ] || [ -e /sys/fs/cgroup/memory ] || {
  echo 'no control groups' >&2
  exit 1
}
unshare --net --mount -- sh -ec '
  iptables -t nat -A OUTPUT -d 10.0.0.1 -m statistic --mode random --probability 0.5 -j MARK --set-mark 1 2>/dev/null ||
    iptables -t nat -L >/dev/null
  mount -t tmpfs tmpfs /mnt
  mkdir /mnt/lower /mnt/upper /mnt/work /mnt/merged
  mount -t overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/merged
'
