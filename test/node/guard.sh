#!/bin/sh
# Holds a real node: makes its control groups, starts its namespaces, and clears all of it up when its owner is gone. That
# is when standard input ends, which the kernel sees to however the owner ended.
#   guard.sh DIRECTORY
# The node's control groups are named for this process.
set -u
directory=$1
prefix=kube-nvr-node-
here=$(dirname "$0")

# The mount points of all hierarchies: one of version 2, many of version 1, or both. Links are other names of the same.
hierarchies() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo /sys/fs/cgroup
  else
    find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d
  fi
}

# A group can go when the last of its processes has.
remove_groups() {
  tries=0
  for hierarchy in $(hierarchies); do
    while [ -d "$hierarchy/$1" ] && [ $tries -lt 200 ]; do
      find "$hierarchy/$1" -depth -type d -exec rmdir {} + 2>/dev/null && break
      tries=$((tries + 1))
      sleep 0.05
    done
  done
}

# Of guards that were killed themselves.
for hierarchy in $(hierarchies); do
  for group in "$hierarchy/$prefix"*; do
    if [ -d "$group" ] && [ ! -e "/proc/${group##*-}" ]; then remove_groups "${group##*/}"; fi
  done
done

for hierarchy in $(hierarchies); do
  group=$hierarchy/$prefix$$
  mkdir "$group" || exit 1
  # A new group of version 1 has no processors and no memory until it is told which.
  for file in cpuset.cpus cpuset.mems; do
    if [ -e "$hierarchy/$file" ] && [ -w "$group/$file" ] && [ -z "$(cat "$group/$file")" ]; then
      cat "$hierarchy/$file" >"$group/$file"
    fi
  done
done

unshare --net --mount --pid --uts --ipc --fork --kill-child --mount-proc -- \
  sh "$here/init.sh" "$directory" </dev/null &
namespaces=$!
echo "$namespaces" >"$directory/unshare.pid"
cat >/dev/null
# Its child is process 1 of the node, which takes all others with it.
kill -KILL "$namespaces" 2>/dev/null
wait "$namespaces" 2>/dev/null
remove_groups "$prefix$$"
if [ -e "$directory/remove" ]; then rm -rf "$directory"; fi
