#!/bin/sh
# Becomes a container: container.sh ROOT HOSTNAME WORKING_DIRECTORY MOUNTS -- COMMAND [ARGUMENT...]
# Runs in mount and UTS namespaces of its own. Its root is this machine's, with the volumes where the pod wants them; what
# must be made for that lies in memory and goes away with the namespace. ROOT is an empty directory, where the root is made
# and nothing is left. MOUNTS is a file of lines: ro|rw TAB SOURCE TAB TARGET, targets before those that lie in them.
set -eu
tab=$(printf '\t')

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
  # Taken hold of now: a volume may be mounted over the place where others come from.
  mkdir -p "$root/.layers/sources"
  number=0
  while IFS=$tab read -r mode source target; do
    number=$((number + 1))
    if [ -d "$source" ]; then mkdir "$root/.layers/sources/$number"; else : >"$root/.layers/sources/$number"; fi
    mount --bind "$source" "$root/.layers/sources/$number"
  done <"$4"
  INSIDE=yes exec unshare --root="$root" -- /bin/sh "$0" "$@"
fi

unset INSIDE
workdir=$3 mounts=$4
shift 5
# First the layers: one that were mounted later would hide volumes whose mount points this machine happens to have.
ours=
number=0
while IFS=$tab read -r mode source target; do
  number=$((number + 1))
  # The nearest directory that exists: nothing is made in one of this machine's, but in a layer over it.
  parent=$target
  while [ ! -e "$parent" ]; do parent=$(dirname "$parent"); done
  is_ours=
  for directory in $ours; do
    case $parent/ in "$directory"/*) is_ours=yes ;; esac
  done
  if [ "$parent" != "$target" ] && [ "$parent" != / ] && [ -z "$is_ours" ]; then
    mkdir -p "/.layers/$number/upper" "/.layers/$number/work"
    layer=lowerdir=$parent,upperdir=/.layers/$number/upper,workdir=/.layers/$number/work
    mount -t overlay -o "$layer" layer "$parent"
    ours="$ours $parent"
  fi
  # As container engines do, a mount point that a volume lacks is made in it.
  ours="$ours $target"
done <"$mounts"
number=0
while IFS=$tab read -r mode source target; do
  number=$((number + 1))
  source=/.layers/sources/$number
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
