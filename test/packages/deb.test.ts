// The Debian package on a Debian server, from its installation to its purge: the tests follow each other on one server. They are
// rules 2 to 5, 7 and 8 of the operation of a server.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { until } from '../support/until.ts';
import { NEXT_VERSION, ownPackages, VERSION } from './packages.ts';
import { Server, serverMissing } from './server.ts';

const ARCHIVE = '/mnt/archive';
const HTTPS = '/etc/recorder/conf.d/00-https.yaml';

interface Readiness {
  readonly status: string;
  readonly version: string;
}

interface Segments {
  readonly archive: readonly { readonly filename: string; readonly size: number; readonly is_open: boolean }[];
}

suite('the Debian package', { skip: serverMissing() }, () => {
  let server: Server;
  let camera: string;

  before(async () => {
    server = await Server.boot();
    camera = await server.startCamera();
  });

  after(() => server?.close());

  const inRoot = (path: string): string => join(server.root, path);
  const install = (on: Server, file: string): Promise<string> =>
    on.run(`apt-get install -y --no-install-recommends ${on.bring(file)}`);
  const ready = (): Promise<Readiness> => server.get('/api/health/ready');
  const mainPid = (): Promise<string> => server.run('systemctl show --property MainPID --value recorder');
  const journal = (): Promise<string> => server.run('journalctl --no-pager --output cat --unit recorder');
  const segments = async (on: Server): Promise<Segments['archive']> => {
    const token = await on.run('cat /var/lib/recorder/admin.token');
    return (await on.get<Segments>('/api/archive/gate/segments', token)).archive;
  };
  test('an installation starts nothing, and makes the user and the directories', async () => {
    await install(server, ownPackages().deb);
    assert.equal((await server.attempt('systemctl is-enabled recorder')).output, 'disabled\n');
    assert.equal((await server.attempt('systemctl is-active recorder')).output, 'inactive\n');
    assert.match(await server.run('getent passwd recorder'), /:\/var\/lib\/recorder:\/usr\/sbin\/nologin$/);
    const paths = '/etc/recorder /etc/recorder/config.yaml /etc/recorder/conf.d /var/lib/recorder /var/log/recorder';
    assert.deepEqual((await server.run(`stat --format '%a %U:%G %n' ${paths}`)).split('\n'), [
      '750 root:recorder /etc/recorder',
      '640 root:recorder /etc/recorder/config.yaml',
      '750 recorder:recorder /etc/recorder/conf.d',
      '750 recorder:recorder /var/lib/recorder',
      '750 recorder:recorder /var/log/recorder',
    ]);
    assert.match(readFileSync(inRoot(HTTPS), 'utf8'), /^tls: auto$/m);
    assert.equal(await server.run('recorder --version'), VERSION);
    assert.match(await server.run('recorder --check-config'), /config\.yaml: ok, 0 cameras$/);
  });

  test('with a wrong configuration it does not start, and the journal names the file, the line and the key', async () => {
    writeFileSync(inRoot('/etc/recorder/conf.d/site.yaml'), 'recordPath: /mnt/archive\n');
    assert.notEqual((await server.attempt('systemctl start recorder')).code, 0);
    assert.match(await journal(), /^recorder: \/etc\/recorder\/conf\.d\/site\.yaml:1:1: recordPath: unknown key/m);
    await assert.rejects(ready());
  });

  test('with the drop-in it starts when the disk of its archive is mounted, and stops before that is unmounted', async () => {
    const dropIn = '/etc/systemd/system/recorder.service.d';
    const wants = '/etc/systemd/system/mnt-disk.mount.wants';
    const example = '/usr/share/doc/recorder/examples/hot-disks.conf';
    writeFileSync(inRoot('/etc/recorder/conf.d/site.yaml'), 'record_path: /mnt/disk/archive\n');
    writeFileSync(inRoot('/etc/fstab'), 'tmpfs /mnt/disk tmpfs noauto,uid=recorder,gid=recorder,mode=750 0 0\n');
    await server.run(`systemctl stop recorder && mkdir -p ${dropIn} ${wants}`);
    await server.run(`sed s:/mnt/archive:/mnt/disk: ${example} >${dropIn}/archive.conf`);
    await server.run(`ln -s /usr/lib/systemd/system/recorder.service ${wants}`);
    await server.run('systemctl daemon-reload && systemctl start mnt-disk.mount');
    await until('it is ready', async () => (await ready()).status === 'ready');
    await server.run('systemctl stop mnt-disk.mount');
    assert.equal((await server.attempt('systemctl is-active recorder')).output, 'inactive\n');
    assert.notEqual((await server.attempt('findmnt /mnt/disk')).code, 0);
    assert.match(await journal(), /"msg":"recorder stopped"/);
    await server.run(`rm -r ${dropIn} ${wants} /var/lib/recorder/* /etc/fstab`);
    await server.run('systemctl daemon-reload');
  });

  test('it answers when systemd says that it has started, and records', async (t) => {
    await server.run('systemctl stop recorder');
    writeFileSync(inRoot('/etc/recorder/conf.d/site.yaml'), 'archive: { segmentDuration: 2s }\n');
    const startMs = performance.now();
    await server.run(`recorder setup --archive ${ARCHIVE} --camera gate=${camera}`);
    await server.run('systemctl enable --now recorder');
    t.diagnostic(`set up, started and ready after ${Math.round(performance.now() - startMs)} ms`);
    assert.deepEqual([(await ready()).status, (await ready()).version], ['ready', VERSION]);
    assert.equal(await server.run(`readlink /proc/${await mainPid()}/cwd`), '/var/lib/recorder');
    await until(
      'three files are closed',
      async () => (await segments(server)).filter((one) => !one.is_open).length >= 3,
    );
    assert.notEqual(readFileSync(inRoot('/var/log/recorder/recorder.log'), 'utf8'), '');
    assert.match(await journal(), /"msg":"recorder started"/);
  });

  test('from its first start on it answers over HTTPS alone, and the first admin is made there', async () => {
    const plain = `exec 3<>/dev/tcp/127.0.0.1/9997; printf 'GET / HTTP/1.1\\r\\nHost: server\\r\\n\\r\\n' >&3; cat <&3`;
    assert.doesNotMatch((await server.attempt(`timeout 60 bash -c "${plain}" | tr -d '\\0'`)).output, /HTTP/);
    assert.match(await server.curl('/'), /^<!doctype html>/i);
    const told = await server.run('recorder admin-link');
    const { fingerprint256 } = new X509Certificate(readFileSync(server.certificate));
    assert.ok(told.endsWith(`: ${fingerprint256}`), told);
    assert.ok((await journal()).includes(`"fingerprint":"${fingerprint256}"`));
    const [, code] = /^https:\/\/server:9997\/#\/welcome\?code=(\S+)$/m.exec(told)!;
    const made = JSON.stringify({ name: 'anna', password: 'correct horse battery', code });
    const json = 'Content-Type: application/json';
    const answer = await server.curl('/api/session', '--include', '--header', json, '--data', made);
    assert.match(answer, /^set-cookie: __Host-kube_nvr_session=[^;]+;.* secure/im);
  });

  test('files of the archive are 0640 in directories 0750, and of the user of the service', async () => {
    const footage = await server.run(`find ${ARCHIVE} -name '*.mp4' -printf '%m %u\\n' | sort -u`);
    assert.equal(footage, '640 recorder');
    assert.equal(await server.run(`find ${ARCHIVE} -type d -printf '%m %u\\n' | sort -u`), '750 recorder');
  });

  test('the unit is valid, and systemd says that its exposure is at most 2 of 10', async (t) => {
    assert.equal(await server.run('systemd-analyze verify --man=no recorder.service'), '');
    const score = /Overall exposure level for recorder\.service: ([\d.]+)/.exec(
      await server.run('systemd-analyze security --no-pager recorder.service'),
    );
    t.diagnostic(score![0]);
    assert.ok(Number(score![1]) <= 2, score![0]);
  });

  test('`systemctl reload` reads the cameras again, and the process stays', async () => {
    const pid = await mainPid();
    writeFileSync(
      inRoot('/etc/recorder/conf.d/yard.yaml'),
      `cameras: [{ id: yard, source: '${camera}', transport: tcp }]`,
    );
    await server.run('systemctl reload recorder');
    await until(
      'both cameras are recorded',
      async () => (await server.run(`find ${ARCHIVE} -name '*yard*.mp4'`)) !== '',
    );
    assert.equal(await mainPid(), pid);
    rmSync(inRoot('/etc/recorder/conf.d/yard.yaml'));
  });

  test('an upgrade keeps a changed config.yaml and does not restart: the old version records until it is restarted', async () => {
    appendFileSync(inRoot('/etc/recorder/config.yaml'), '# Mine.\n');
    const mine = readFileSync(inRoot('/etc/recorder/config.yaml'), 'utf8');
    const pid = await mainPid();
    // Return is the default answer to dpkg's question.
    await server.run(`echo | dpkg --install ${server.bring(ownPackages().nextDeb)}`);
    assert.equal(readFileSync(inRoot('/etc/recorder/config.yaml'), 'utf8'), mine);
    assert.equal(await server.run("dpkg-query --show --showformat '${Version}' recorder"), `${NEXT_VERSION}-1`);
    assert.deepEqual([await mainPid(), (await ready()).version], [pid, VERSION]);
    const count = (await segments(server)).length;
    await until('it records on', async () => (await segments(server)).length > count);
    await server.run('systemctl restart recorder');
    assert.deepEqual([(await ready()).status, (await ready()).version], ['ready', NEXT_VERSION]);
  });

  test('a process that hangs is ended by the watchdog and started again', async () => {
    const directory = inRoot('/etc/systemd/system/recorder.service.d');
    await server.run('mkdir -p /etc/systemd/system/recorder.service.d');
    writeFileSync(join(directory, 'test.conf'), '[Service]\nWatchdogSec=10\nTimeoutAbortSec=1\nRestartSec=0\n');
    await server.run('systemctl daemon-reload && systemctl restart recorder');
    const pid = await mainPid();
    await server.run(`kill -STOP ${pid}`);
    await until(
      'another process is ready',
      async () => (await mainPid()) !== pid && (await ready()).status === 'ready',
    );
    assert.match(await journal(), /Watchdog timeout/);
    rmSync(directory, { recursive: true });
    await server.run('systemctl daemon-reload');
  });

  test('a server made from scratch with the saved /etc/recorder and the old disk finds the archive', async () => {
    await server.run('systemctl stop recorder && tar -C /etc -cf /root/backup.tar recorder');
    const footage = await server.run(`cd ${ARCHIVE} && find 2* -name 'gate_*.mp4' | sort`);
    const fresh = await Server.boot();
    try {
      // On the new server the user has another number, as on a real one.
      await fresh.run('useradd --system somebody');
      await install(fresh, ownPackages().nextDeb);
      await fresh.run('rm -r /etc/recorder');
      await fresh.run(`tar -C /etc -xf ${fresh.bring(inRoot('/root/backup.tar'))}`);
      execFileSync('cp', ['--archive', inRoot(ARCHIVE), join(fresh.root, ARCHIVE)]);
      await fresh.run(`chown -R recorder:recorder ${ARCHIVE}`);
      await fresh.run('systemctl enable --now recorder');
      const found = await until('it has read the archive', async () => {
        const all = await segments(fresh);
        return all.length > 0 && all;
      });
      const names = found.map(({ filename }) => filename).sort();
      assert.deepEqual(names, footage.split('\n'));
    } finally {
      await fresh.close();
    }
  });

  test('a removal stops it and keeps archive, state and configuration', async () => {
    await server.run('systemctl start recorder && apt-get remove -y recorder');
    assert.notEqual((await server.attempt('systemctl is-active recorder')).code, 0);
    assert.ok(!existsSync(inRoot('/usr/lib/recorder')));
    for (const path of [
      '/etc/recorder/config.yaml',
      '/etc/recorder/conf.d/site.yaml',
      '/var/lib/recorder/admin.token',
    ]) {
      assert.ok(existsSync(inRoot(path)), path);
    }
    assert.notEqual(await server.run(`find ${ARCHIVE} -name '*.mp4'`), '');
  });

  test('a purge keeps the archive, also in the directory of the state, and removes the rest', async () => {
    // As with the record_path of the package.
    await server.run(`mv ${ARCHIVE} /var/lib/recorder/recordings`);
    const count = await server.run("find /var/lib/recorder/recordings -name '*.mp4' | wc -l");
    await server.run('apt-get purge -y recorder');
    assert.deepEqual(readdirSync(inRoot('/var/lib/recorder')), ['recordings']);
    assert.equal(await server.run("find /var/lib/recorder/recordings -name '*.mp4' | wc -l"), count);
    assert.ok(!existsSync(inRoot('/etc/recorder')));
    assert.ok(!existsSync(inRoot('/var/log/recorder')));
  });
});
