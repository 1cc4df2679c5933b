// Three servers without Kubernetes: rules 6 and 9 to 13 of the operation of a server, as docs/operations tells their administrators, on
// Debian with systemd, the package, and real etcd. One cluster for all tests, which follow each other.

import { after, afterEach, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Camera } from '../../crds/camera.ts';
import { SLOW_MS } from '../bench/failover/recording-stage.ts';
import { endOf, footageOf, holesIn, type Piece } from '../bench/failover/footage.ts';
import { prepareMedia, tinyPictures } from '../bench/media.ts';
import { cacheDirectory } from '../cluster/programs.ts';
import { resource, RESOURCES } from '../cluster/own-operator.ts';
import { Page } from '../operations/page.ts';
import { until as untilWithin } from '../support/until.ts';
import { ownPackages, NEXT_VERSION, VERSION } from './packages.ts';
import { Servers, serversMissing, untilReady } from './servers.ts';

const KEY_FRAMES_S = 1;
/** Cameras that lost their server return soon, so that all tests begin alike. */
const FAILBACK_S = 5;
/** A silence of 15 s moves cameras. Its last sign of life was up to 2 s before. */
const SILENCE_S = 13;
/** Key frames of the old and the new recorder overlap; what stands between two files is no loss. */
const NOTHING_S = 1;
/** Of a server, without its footage. */
const STATE = 'var/lib/recorder';
/** Of a server, as the pages say. */
const [, AUTHORITIES = ''] =
  /^export CURL_CA_BUNDLE=(.*)$/m.exec(readFileSync('docs/operations/README.md', 'utf8')) ?? [];
const CAMERAS = ['gate', 'hall', 'yard'] as const;

type CameraName = (typeof CAMERAS)[number];

const until = <T>(what: string, ask: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> =>
  untilWithin(what, ask, 2 * SLOW_MS, 200);

suite('three servers without Kubernetes', { skip: serversMissing() }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-servers-'));
  const begunMs = Date.now();
  let servers: Servers;
  let page: Page | undefined;
  let token = '';

  before(async () => {
    const media = prepareMedia(join(cacheDirectory(), 'media'), tinyPictures(KEY_FRAMES_S));
    const { deb } = ownPackages();
    servers = await Servers.start({ directory, deb, media, cameras: CAMERAS.length, keyFrameMs: KEY_FRAMES_S * 1_000 });
    const cameras = CAMERAS.map((name, i) =>
      resource('Camera', name, {
        source: servers.sender.urls[i],
        transport: 'Tcp',
        record: { segmentSeconds: 10 },
        placement: { preferredNode: `rack-${i + 1}` },
      }),
    );
    const failover = { failbackAfterSeconds: FAILBACK_S };
    await servers.apply([resource('RecorderPool', 'default', { failover }), ...cameras]);
    await home().catch(async (error: unknown) => {
      console.log(await servers.journals());
      throw error;
    });
  });

  afterEach(async (t) => {
    const hasPassed = 'passed' in t && t.passed;
    if (hasPassed) {
      page?.end();
      await servers.assertVotesAreTold();
    } else console.log('error' in t ? t.error : '', await servers.journals());
    page = undefined;
  });

  after(async () => {
    await servers?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const cameras = (): Promise<readonly Camera[]> => servers.api.list(`${RESOURCES}/cameras`);

  /** All servers vote, and each camera is recorded where it prefers to be. */
  const home = (): Promise<true> =>
    until('everything is at home', async () => {
      assert.deepEqual(await servers.etcdVoters(), servers.names, 'votes in etcd');
      assert.deepEqual((await servers.metrics('rack-1')).voters.toSorted(), servers.names, 'votes');
      const all = await cameras();
      assert.equal(all.length, CAMERAS.length);
      const isAtHome = ({ spec, status }: Camera): boolean =>
        status?.assignment?.node === spec.placement?.preferredNode &&
        status?.assignment?.handover !== 'Pending' &&
        status?.conditions?.some(({ type, status: is }) => type === 'Recording' && is === 'True') === true;
      const away = all.filter((camera) => !isAtHome(camera));
      const told = away.map(({ metadata, status }) => ({ ...status, name: metadata.name }));
      assert.ok(away.length === 0, `not at home: ${JSON.stringify(told)}`);
      return true;
    });

  const nodeOf = async (camera: CameraName): Promise<string | undefined> =>
    (await cameras()).find(({ metadata }) => metadata.name === camera)?.status?.assignment?.node;

  /** What the files of all servers show of a camera since a time. */
  async function footage(camera: CameraName, fromMs: number): Promise<readonly Piece[]> {
    const disks = servers.names.map((node) => ({ node, root: servers.archive(node) }));
    return (await footageOf(disks, [camera], fromMs)).get(camera) ?? [];
  }

  /** Seconds of which no server has footage, once a file reaches the end. */
  async function missing(camera: CameraName, fromMs: number, toMs = Date.now()): Promise<number> {
    const pieces = await until(`the footage of ${camera} reaches ${new Date(toMs).toISOString()}`, async () => {
      const found = await footage(camera, fromMs);
      return endOf(found) >= toMs && found;
    });
    return holesIn(pieces, fromMs, toMs).reduce((sum, hole) => sum + hole.toMs - hole.fromMs, 0) / 1_000;
  }

  /** Seconds of a camera's footage that two servers have. */
  async function doubled(camera: CameraName, fromMs: number): Promise<number> {
    const pieces = [...(await footage(camera, fromMs))].sort((a, b) => a.fromMs - b.fromMs);
    let [ms, untilMs] = [0, fromMs];
    for (const piece of pieces) {
      ms += Math.max(0, Math.min(untilMs, piece.toMs) - Math.max(piece.fromMs, fromMs));
      untilMs = Math.max(untilMs, piece.toMs);
    }
    return ms / 1_000;
  }

  /** Runs a line of a page on a server, or on the one that leads. There is no curl on them: that of this machine is used in their network. */
  async function on(name: string, script: string): Promise<{ code: number; printed: string }> {
    const server = servers.server(name === 'leader' ? await servers.leader() : name);
    const line = script
      .replaceAll(/192\.0\.2\.(\d)/g, (_, number: string) => servers.address(`rack-${number}`))
      .replaceAll('nvrjoin.…', token)
      .replaceAll(/\.\/recorder_\S+\.deb/g, () => server.bring(ownPackages().nextDeb));
    if (line.startsWith('curl ')) {
      const here = line.replaceAll(/(?<![\w.])\/(mnt|var\/lib)\b/g, `${server.root}/$1`);
      return new Promise((resolve) => {
        const args = ['--target', `${server.pid}`, '--net', 'bash', '-c', `exec 2>&1\n${here}`];
        const env = {
          ...process.env,
          CURL_CA_BUNDLE: join(server.root, AUTHORITIES.replace('$(hostname)', server.hostname)),
        };
        const limits = { timeout: SLOW_MS, killSignal: 'SIGKILL', env } as const;
        execFile('nsenter', args, limits, (error, printed) => resolve({ code: error ? 1 : 0, printed }));
      });
    }
    const { code, output } = await server.attempt(line);
    token = /nvrjoin\.\S+/.exec(output)?.[0] ?? token;
    return { code, printed: output.replaceAll(token || '\0', 'nvrjoin.…') };
  }

  async function untilMoved(camera: CameraName, from: string): Promise<void> {
    await until(`${camera} has left ${from}`, async () => (await nodeOf(camera)) !== from);
  }

  const open = (name: string): Page => (page = new Page(name, { on }));

  /** A camera is recorded by another server after the silence of its own. Nothing of it is recorded twice. */
  async function assertFailedOver(camera: CameraName, lost: string, lostAtMs: number): Promise<void> {
    await untilMoved(camera, lost);
    const gap = await missing(camera, lostAtMs);
    assert.ok(gap >= SILENCE_S, `${camera} moved after ${gap} s`);
    assert.ok((await doubled(camera, lostAtMs)) <= NOTHING_S);
  }

  test('the server whose operator leads loses its power: others record its camera, and it returns as it was', async () => {
    const leader = await servers.leader();
    const camera = CAMERAS[servers.names.indexOf(leader)]!;
    const others = CAMERAS.filter((one) => one !== camera);
    const lostAtMs = Date.now();
    await servers.kill(leader);
    await assertFailedOver(camera, leader, lostAtMs);
    for (const other of others) assert.ok((await missing(other, lostAtMs)) <= NOTHING_S, other);
    assert.notEqual(await servers.leader(), leader);
    await servers.start(leader);
    await home();
  });

  test('a server that died is replaced by another one under its name, with its disk', async () => {
    const follow = open('replace-node.md');
    const kept = await footage('hall', begunMs);
    assert.ok(kept.length > 0);
    let lostAtMs = 0;
    await follow.follow('A server without Kubernetes dies', {
      events: {
        'rack-2 dies': () => {
          lostAtMs = Date.now();
          return servers.kill('rack-2');
        },
      },
      any: ['NAME', 'NODE', 'PREVIOUS', 'BECAUSE'],
    });
    await assertFailedOver('hall', 'rack-2', lostAtMs);
    await follow.follow('A server without Kubernetes is replaced', {
      events: {
        'a new server with the name rack-2, the configuration and the disk of the old one is there': async () => {
          const { root } = servers.server('rack-2');
          for (const name of readdirSync(join(root, STATE))) rmSync(join(root, STATE, name), { recursive: true });
          rmSync(join(root, 'etc/systemd/system/multi-user.target.wants/recorder.service'));
          await servers.start('rack-2');
        },
      },
    });
    await servers.untilVoter('rack-2');
    const backAtMs = Date.now();
    await home();
    assert.ok((await missing('hall', backAtMs)) <= NOTHING_S);
    const files = new Set((await footage('hall', begunMs)).map(({ path }) => path));
    for (const { path } of kept) assert.ok(files.has(path), path);
  });

  test('a server that is cut off continues to record, others record its camera, too, and the second recording ends with the outage', async () => {
    let cutAtMs = 0;
    await open('cut-off.md').follow('Servers without Kubernetes', {
      events: {
        'rack-2 is cut off': () => {
          cutAtMs = Date.now();
          servers.cutOff('rack-2');
        },
        'the link is back': async () => {
          await untilMoved('hall', 'rack-2');
          const movedAtMs = Date.now();
          await until('both record it', async () => (await doubled('hall', movedAtMs)) > 0);
          servers.reconnect('rack-2');
        },
      },
      any: ['NAME', 'NODE', 'PREVIOUS', 'BECAUSE'],
    });
    await home();
    assert.equal(await missing('hall', cutAtMs), 0);
    const twice = await doubled('hall', cutAtMs);
    assert.ok(twice > 0 && twice < (Date.now() - cutAtMs) / 1_000 - SILENCE_S, `${twice} s twice`);
    const homeAtMs = Date.now();
    await until('there is new footage', async () => endOf(await footage('hall', homeAtMs)) > homeAtMs + 3_000);
    assert.ok((await doubled('hall', homeAtMs)) <= NOTHING_S);
  });

  test('with two of three servers lost no camera moves and the last server continues to record, also after a restart; with two servers, cameras move', async () => {
    const follow = open('lost-majority.md');
    const lostAtMs = Date.now();
    await follow.follow('Servers without Kubernetes', {
      events: {
        'rack-2 and rack-3 die': () => Promise.all(['rack-2', 'rack-3'].map((name) => servers.kill(name))),
        'rack-3 boots again': async () => {
          await untilWithin('a camera would have moved', () => Date.now() > lostAtMs + 20_000, 60_000);
          assert.ok((await missing('gate', lostAtMs)) <= NOTHING_S);
          const { code } = await on('rack-1', 'recorder get cameras');
          assert.notEqual(code, 0);
          await servers.server('rack-1').run('systemctl restart recorder');
          const restartedAtMs = Date.now();
          await until('it records again', async () => endOf(await footage('gate', restartedAtMs)) > restartedAtMs);
          assert.deepEqual(
            (await footage('hall', lostAtMs)).filter(({ fromMs }) => fromMs > lostAtMs),
            [],
          );
          await servers.start('rack-3');
        },
      },
      any: ['NAME', 'NODE', 'PREVIOUS', 'BECAUSE'],
    });
    await untilMoved('hall', 'rack-2');
    await servers.start('rack-2');
    await home();
  });

  test('a server is reset, and one whose state was deleted by hand gets a new certificate', async () => {
    const follow = open('nodes.md');
    const server = servers.server('rack-3');
    const tls = join(server.root, 'var/lib/recorder/data/node_rack-3/tls/certificate.pem');
    const before = readFileSync(tls, 'utf8');
    const pid = (): Promise<string> => server.run('systemctl show --property MainPID --value recorder');
    const own = await pid();
    const startMs = Date.now();
    await follow.follow('A server without Kubernetes does not work as a member', { any: ['READY', 'REASON'] });
    await servers.untilVoter('rack-3');
    assert.equal(await pid(), own);
    assert.equal(readFileSync(tls, 'utf8'), before);
    await home();
    assert.ok((await missing('yard', startMs)) <= SILENCE_S);
    await follow.follow('The state of a server without Kubernetes was deleted');
    await servers.untilVoter('rack-3');
    assert.notEqual(readFileSync(tls, 'utf8'), before);
    await home();
  });

  test('a state from a backup is refused with an instruction, and the instruction helps', async () => {
    const server = servers.server('rack-3');
    const data = '/var/lib/recorder/data';
    const restart = 'systemctl restart recorder';
    await server.run(`systemctl stop recorder && cp -a ${data} /root/data && ${restart}`);
    await untilReady(server);
    await server.run(restart);
    await untilReady(server);
    await open('restore.md').follow('A server without Kubernetes whose state came from a backup', {
      events: {
        'an old copy of /var/lib/recorder/data is put in place of the one of rack-3, and the server starts':
          async () => {
            const swap = `rm -r ${data} && cp -a /root/data ${data}`;
            await server.run(`systemctl stop recorder && ${swap} && (systemctl start recorder || true)`);
            await server.run('systemctl stop recorder');
          },
      },
    });
    await servers.untilVoter('rack-3');
    await home();
  });

  test('all servers are upgraded one after the other, and not a second is missing', async () => {
    const startMs = Date.now();
    for (const [i, name] of servers.names.entries()) {
      const [second, third] = servers.names.filter((one) => one !== name);
      const names = { 'rack-1': name, 'rack-2': second!, 'rack-3': third! };
      const follow = open('upgrade.md');
      await follow.follow('Servers without Kubernetes', { any: ['NAME', 'NODE', 'PREVIOUS', 'BECAUSE'], names });
      const expected = servers.names.map((_, j) => (j <= i ? NEXT_VERSION : VERSION));
      await until(`${name} is online with the new version`, async () => {
        const { nodes } = await servers.metrics(second!);
        return String(nodes.map(({ online, version }) => online && version)) === String(expected);
      });
    }
    await home();
    for (const camera of CAMERAS) assert.ok((await missing(camera, startMs)) <= NOTHING_S, camera);
  });
});
