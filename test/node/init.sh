#!/bin/sh
# Process 1 of a real node, in namespaces of its own: gives the node a disk of its own where programs write, starts what
# runs on a node, and buries what loses its parent.
#   init.sh DIRECTORY
# DIRECTORY has bin/NAME for each program, etc/ with their configuration, and root/, which is the node's disk.
set -eu
directory=$1

# What is mounted here must not reach the machine (unshare saw to that), but containers.
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/node
mount --rbind "$directory" /run/node
# Programs may lie in what gets hidden next.
for program in /run/node/bin/*; do
  mkdir -p /run/bin
  : >"/run/bin/${program##*/}"
  mount --bind "$(readlink -f "$program")" "/run/bin/${program##*/}"
done
for path in /var/lib /var/log /mnt; do
  mkdir -p "/run/node/root$path"
  mount --bind "/run/node/root$path" "$path"
done

# kubelet sets these for the whole machine if they differ.
while read -r name value; do
  echo "$value" >"/run/${name##*/}.sysctl"
  mount --bind "/run/${name##*/}.sysctl" "/proc/sys/$name"
done <<'END'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END
echo 1 >/proc/sys/net/ipv4/ip_forward

until [ -n "$(ip route show default)" ]; do sleep 0.05; done

start() {
  name=$1
  shift
  "$name" "$@" >>"/run/node/logs/${name##*/}.log" 2>&1 &
}

start containerd --config /run/node/etc/containerd.toml
until ctr --address /run/containerd/containerd.sock version >/dev/null 2>&1; do sleep 0.1; done
echo ready >/run/node/containerd.ready
# shellcheck source=/dev/null
. /run/node/etc/programs.sh

sleep infinity &
while :; do wait; done
