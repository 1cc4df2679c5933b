#!/bin/sh
# Becomes a container: container.sh ROOT HOSTNAME WORKING_DIRECTORY MOUNTS -- COMMAND [ARGUMENT...]
# Runs in mount and UTS namespaces of its own. Its root is this machine's, with the volumes where the pod wants them; what
# must be made for that lies in memory and goes away with the namespace. ROOT is an empty directory, where the root is made
# and nothing is left. MOUNTS is a file of lines: ro|rw TAB SOURCE TAB TARGET.
set -eu

if [ "${INSIDE:-}" = "" ]; then
  root=$1
  hostname "$2"
  mount -t tmpfs -o mode=755 root "$root"
  # Or the tree under the directory that holds ROOT would be mounted in itself.
  mount --make-unbindable "$root"
  for entry in /* /.[!.]*; do
    if [ -L "$entry" ]; then
      cp -P "$entry" "$root$entry"
    elif [ -d "$entry" ]; then
      mkdir "$root$entry"
      mount --rbind "$entry" "$root$entry"
    fi
  done
  mount --make-private "$root"
  mkdir "$root/.layers"
  INSIDE=yes exec unshare --root="$root" -- /bin/sh "$0" "$@"
fi

unset INSIDE
workdir=$3 mounts=$4
shift 5
made=
layer=0
tab=$(printf '\t')
while IFS=$tab read -r mode source target; do
  # The nearest directory that exists: nothing is made in one of this machine's, but in a layer over it.
  parent=$target
  while [ ! -e "$parent" ]; do parent=$(dirname "$parent"); done
  ours=
  for directory in $made; do
    case $parent/ in "$directory"/*) ours=yes ;; esac
  done
  if [ "$parent" != "$target" ] && [ "$parent" != / ] && [ -z "$ours" ]; then
    layer=$((layer + 1))
    mkdir -p "/.layers/$layer/upper" "/.layers/$layer/work"
    mount -t overlay -o "lowerdir=$parent,upperdir=/.layers/$layer/upper,workdir=/.layers/$layer/work" layer "$parent"
    made="$made $parent"
  fi
  if [ -d "$source" ]; then
    mkdir -p "$target"
  else
    mkdir -p "$(dirname "$target")"
    [ -e "$target" ] || : >"$target"
  fi
  mount --bind "$source" "$target"
  if [ "$mode" = ro ]; then mount -o remount,bind,ro "$target"; fi
done <"$mounts"
cd "$workdir"
exec "$@"
