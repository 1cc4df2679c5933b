#!/bin/sh
# After an installation or an upgrade. It starts and restarts nothing: a restart interrupts recording.
set -eu
systemd-sysusers recorder.conf
# Only systemd-tmpfiles makes this directory: without it, nobody has used the recorder here, whose clients would have to go over to HTTPS.
if [ ! -e /etc/recorder/conf.d ]; then
  mkdir /etc/recorder/conf.d
  cat >/etc/recorder/conf.d/00-https.yaml <<'END'
# Of a new installation: HTTPS, with a certificate that the recorder makes itself. Files of conf.d/ with later names override it, for
# instance with a certificate of yours. Without this file, API, page and recordings are served over plain HTTP.
tls: auto
END
fi
systemd-tmpfiles --create recorder.conf
# A larger value stays; in a container it cannot be set.
if [ "$(cat /proc/sys/net/core/rmem_max 2>/dev/null || echo 2097152)" -lt 2097152 ]; then
  /usr/lib/systemd/systemd-sysctl 10-recorder.conf 2>/dev/null || true
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
