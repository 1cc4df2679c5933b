#!/bin/sh
# Before the package is removed, and not before an upgrade, which interrupts no recording.
set -eu
case ${1:-} in
  remove | 0)
    if [ -d /run/systemd/system ]; then systemctl disable --now recorder.service || true; fi
    ;;
esac
