#!/bin/sh
# A removal keeps archive, state and configuration. A purge removes state, logs and configuration, and keeps the archive.
set -eu
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
[ "${1:-}" = purge ] || exit 0

rm -rf /etc/recorder /var/log/recorder /var/cache/recorder
state=/var/lib/recorder
[ -d "$state" ] || exit 0
# Every archive has this file. One may be the directory of state itself, or be in it.
if [ ! -e "$state/.kube-nvr/archive.json" ]; then
  # The recorder's user chose these names: one may have a line break, or begin with a blank.
  # shellcheck disable=SC2016 # the inner shell expands them
  find "$state" -mindepth 1 -maxdepth 1 -exec sh -c '
    for path do
      if [ -z "$(find "$path" -path "*/.kube-nvr/archive.json" -print -quit)" ]; then rm -rf --one-file-system "$path"; fi
    done' sh {} +
fi
rmdir --ignore-fail-on-non-empty "$state"
