// The RPM package by rpm itself, under systemd: an upgrade and a removal. The server is a Debian, whose libraries rpm does not know.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../support/until.ts';
import { NEXT_VERSION, ownPackages, VERSION } from './packages.ts';
import { Server, serverMissing } from './server.ts';

const HTTPS = '/etc/recorder/conf.d/00-https.yaml';

suite('the RPM package', { skip: serverMissing() }, () => {
  let server: Server;

  before(async () => {
    server = await Server.boot();
  });

  after(() => server?.close());

  const inRoot = (path: string): string => join(server.root, path);
  const rpm = (...args: readonly string[]): Promise<string> => server.run(`rpm --force-debian ${args.join(' ')}`);
  const footage = (): Promise<string> => server.run("find /var/lib/recorder/recordings -name '*.mp4'");
  const version = async (): Promise<string> => (await server.get<{ version: string }>('/api/health/ready')).version;

  test('an installation starts nothing, and makes the user and the directories', async () => {
    await rpm('--nodeps --install', server.bring(ownPackages().rpm));
    assert.equal((await server.attempt('systemctl is-enabled recorder')).output, 'disabled\n');
    assert.equal((await server.attempt('systemctl is-active recorder')).output, 'inactive\n');
    const paths = '/etc/recorder /etc/recorder/config.yaml /etc/recorder/conf.d /var/lib/recorder /var/log/recorder';
    assert.deepEqual((await server.run(`stat --format '%a %U:%G' ${paths}`)).split('\n'), [
      '750 root:recorder',
      '640 root:recorder',
      '750 recorder:recorder',
      '750 recorder:recorder',
      '750 recorder:recorder',
    ]);
  });

  test('an upgrade writes config.yaml.rpmnew next to a changed file and does not restart', async () => {
    // Packages before this one did not write it.
    rmSync(inRoot(HTTPS));
    const camera = await server.startCamera();
    writeFileSync(
      inRoot('/etc/recorder/conf.d/site.yaml'),
      `cameras: [{ id: gate, source: '${camera}', transport: tcp }]\n`,
    );
    appendFileSync(inRoot('/etc/recorder/config.yaml'), '# Mine.\n');
    const mine = readFileSync(inRoot('/etc/recorder/config.yaml'), 'utf8');
    await server.run('systemctl enable --now recorder');
    await until('it records', async () => (await footage()) !== '');
    const pid = await server.run('systemctl show --property MainPID --value recorder');
    await rpm('--nodeps --upgrade', server.bring(ownPackages().nextRpm));
    assert.equal(await rpm('--query', "--queryformat '%{VERSION}'", 'recorder'), NEXT_VERSION);
    assert.equal(readFileSync(inRoot('/etc/recorder/config.yaml'), 'utf8'), mine);
    assert.match(readFileSync(inRoot('/etc/recorder/config.yaml.rpmnew'), 'utf8'), /^# Of the next version\.$/m);
    assert.equal(await server.run('systemctl show --property MainPID --value recorder'), pid);
    assert.equal(await server.run('systemctl is-enabled recorder'), 'enabled');
    assert.equal(await version(), VERSION);
    await server.run('systemctl restart recorder');
    assert.equal(await version(), NEXT_VERSION);
    assert.ok(!existsSync(inRoot(HTTPS)) && !existsSync(server.certificate));
  });

  test('a removal stops it and keeps archive, state and configuration', async () => {
    const mine = readFileSync(inRoot('/etc/recorder/config.yaml'), 'utf8');
    await rpm('--erase', 'recorder');
    assert.notEqual((await server.attempt('systemctl is-active recorder')).code, 0);
    assert.ok(!existsSync(inRoot('/usr/lib/recorder')));
    assert.notEqual(await footage(), '');
    assert.ok(existsSync(inRoot('/var/lib/recorder/admin.token')));
    assert.ok(existsSync(inRoot('/etc/recorder/conf.d/site.yaml')));
    // rpm's own name for a changed file of a package that is gone.
    assert.equal(readFileSync(inRoot('/etc/recorder/config.yaml.rpmsave'), 'utf8'), mine);
  });
});
