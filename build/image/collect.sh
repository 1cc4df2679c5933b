#!/bin/sh
# collect.sh ROOT PROGRAM...: copies programs and the libraries that they load into ROOT, with the metadata of their packages
# (var/lib/dpkg/status.d, which scanners read) and their licences. Runs on Debian or a derivative.
set -eu

root=$1
shift

# If /bin and /lib are symbolic links, make them so in ROOT.
for directory in /bin /lib /lib64 /sbin; do
  if [ -L "$directory" ]; then
    mkdir -p "$root/$(readlink "$directory")"
    cp -P "$directory" "$root$directory"
  fi
done
mkdir -p "$root/etc" "$root/tmp" "$root/var/lib/dpkg/status.d"
chmod 1777 "$root/tmp"
cp -L /etc/os-release "$root/etc/os-release"
if [ -f /etc/debian_version ]; then cp /etc/debian_version "$root/etc/debian_version"; fi
# The copyright files of packages refer to these licences.
mkdir -p "$root/usr/share"
cp -rL /usr/share/common-licenses "$root/usr/share/common-licenses"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
printf '%s\n' root:x:0:0:root:/:/sbin/nologin nonroot:x:65532:65532:nonroot:/:/sbin/nologin >"$root/etc/passwd"
printf '%s\n' root:x:0: nonroot:x:65532: >"$root/etc/group"

# Prints the package of a file; nothing if it belongs to none. Some packages still list files below /lib, now a link.
package_of() {
  real=$(realpath "$1")
  for path in "$1" "$real" "${real#/usr}"; do
    if owner=$(dpkg-query -S "$path" 2>/dev/null); then
      printf '%s\n' "$owner" | head -n 1 | sed 's/: .*//'
      return
    fi
  done
}

add_package() {
  name=${1%%:*}
  if [ -z "$name" ] || [ -e "$root/var/lib/dpkg/status.d/$name" ]; then return; fi
  dpkg-query -s "$1" >"$root/var/lib/dpkg/status.d/$name"
  mkdir -p "$root/usr/share/doc/$name"
  cp -L "/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name/copyright"
}

# add FILE: copies it under the name by which it is looked up.
add() {
  directory=$(realpath "$(dirname "$1")")
  mkdir -p "$root$directory"
  cp -L "$1" "$root$directory/$(basename "$1")"
  chmod 755 "$root$directory/$(basename "$1")"
  add_package "$(package_of "$1")"
}

for program in "$@"; do
  add "$program"
  ldd "$program" | sed -n 's|^.* => \(/[^ ]*\) .*|\1|p; s|^[[:space:]]*\(/[^ ]*\) .*|\1|p' | while read -r library; do
    if [ ! -e "$root$(realpath "$(dirname "$library")")/$(basename "$library")" ]; then add "$library"; fi
  done
done
