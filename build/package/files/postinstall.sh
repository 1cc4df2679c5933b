#!/bin/sh
# After an installation or an upgrade. It starts and restarts nothing: a restart interrupts recording.
set -eu
systemd-sysusers recorder.conf
systemd-tmpfiles --create recorder.conf
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
