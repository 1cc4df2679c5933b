#!/bin/sh
# After an installation or an upgrade. It starts and restarts nothing: a restart interrupts recording.
set -eu
systemd-sysusers recorder.conf
systemd-tmpfiles --create recorder.conf
# A larger value stays; in a container it cannot be set.
if [ "$(cat /proc/sys/net/core/rmem_max 2>/dev/null || echo 2097152)" -lt 2097152 ]; then
  /usr/lib/systemd/systemd-sysctl 10-recorder.conf 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
