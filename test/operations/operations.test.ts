// What docs/operations says, done on a cluster: every command of its pages is run and prints what stands there.

import { after, afterEach, beforeEach, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { helmMissing } from '../chart/helm.ts';
import { clusterMissing } from '../cluster/cluster.ts';
import { untilAllVote } from '../cluster/own-operator.ts';
import { reportFailure } from '../cluster/report.ts';
import { API_VERSION } from '../../crds/names.ts';
import type { Page } from './page.ts';
import { LONG } from '../support/variant.ts';
import { NODES, startStage, type Stage } from './stage.ts';

/** A recorder notices a camera that went away, asks again, and waits for a key frame. */
const RECONNECT_SECONDS = 15;
/** Key frames of the old and the new recorder overlap; what stands between two files is no loss. */
const NOTHING_SECONDS = 1;

const MISSING = helmMissing() || clusterMissing();
const SHORT = !LONG && 'each takes minutes and a cluster of its own; LONG=1 runs them';

/** What the tests of a suite have: a cluster as every page begins with, and the page that one follows. */
interface Ground {
  readonly stage: Stage;
  open(page: string): Page;
}

/** `shared`: the cluster of a test that passed is good for the next one. */
function ground({ shared }: { readonly shared: boolean }): Ground {
  let stage: Stage | undefined;
  let page: Page | undefined;
  const end = async (): Promise<void> => {
    const old = stage;
    stage = undefined;
    await old?.close();
  };
  /** No page changes what the operator makes for a pool: its own writes are not those of others. */
  const assertNothingRestored = async (): Promise<void> => {
    const events = await stage!.cluster.api.list<{ reason?: string; note?: string }>(
      '/apis/events.k8s.io/v1/namespaces/kube-nvr/events',
    );
    assert.deepEqual(
      events.filter(({ reason }) => reason === 'ObjectRestored').map(({ note }) => note),
      [],
    );
  };
  beforeEach(async () => {
    stage ??= await startStage();
    await stage.home();
  });
  afterEach(async (t) => {
    const hasPassed = 'passed' in t && t.passed;
    if (hasPassed) await assertNothingRestored();
    await reportFailure(() => stage?.cluster)(t);
    if (!shared || !hasPassed) await end();
    if (hasPassed) page?.end();
  });
  after(end);
  return {
    get stage() {
      assert.ok(stage);
      return stage;
    },
    open: (name) => (page = stage!.page(name)),
  };
}

suite('docs/operations', { skip: MISSING }, () => {
  const on = ground({ shared: true });

  test('a password is changed: at the camera, then in its Secret; only a reconnect is lost', async () => {
    const { stage } = on;
    const camera = stage.cameras.get('hall')!;
    const change = (password: string) => () => {
      stage.login.password = password;
      camera.disconnect();
    };
    const page = on.open('password.md');
    await page.follow('At the camera, then in its Secret', {
      events: { 'the password of the camera is changed, and it ends its streams': change('after') },
    });
    assert.ok(stage.lostSeconds('hall') <= RECONNECT_SECONDS);
    await page.follow('If the Secret was not changed', {
      events: { 'the password of the camera is changed to another one': change('another') },
    });
  });

  test('a node that died is replaced, with its disk, without it, and with another', async () => {
    const { stage } = on;
    const node = stage.cluster.node('node-2');
    const page = on.open('replace-node.md');
    await page.follow('What happens by itself', { events: { 'node-2 dies': () => node.kill() } });
    const kept = stage.files('node-2', 'hall');
    assert.ok(kept.length > 0);
    const joinAnew = async (wiped: string): Promise<void> => {
      rmSync(join(node.root, wiped), { recursive: true, force: true });
      mkdirSync(stage.archive('node-2'), { recursive: true });
      await node.start();
    };
    await page.follow('With its disk', {
      events: {
        'a new server with the name node-2 and the disk of the old one joins the cluster': () => joinAnew('var'),
      },
    });
    assert.deepEqual(stage.files('node-2', 'hall'), kept);
    for (const file of kept) assert.ok(await stage.plays('node-2', file), file);
    await page.follow('Without its disk', {
      events: {
        'node-2 dies, and its disk with it': () => node.kill(),
        'a new server with the name node-2 and an empty disk joins the cluster': () => joinAnew('.'),
      },
    });
    await page.follow('With another disk in the old server', {
      events: {
        'the disk of node-2 is replaced by an empty one, and the server starts again': async () => {
          await node.kill();
          await joinAnew('mnt');
        },
      },
    });
    await page.follow('Without a replacement', { events: { 'node-2 dies and is not replaced': () => node.kill() } });
    await node.start();
    const path = `/apis/${API_VERSION}/namespaces/kube-nvr/recordernodes/node-2`;
    await stage.cluster.api.patch(path, 'merge', { spec: { role: 'Learner' } });
    await untilAllVote(stage.cluster, 'kube-nvr');
  });

  test('without a majority nothing moves and everything continues to be recorded, until a person removes the nodes that are gone', async () => {
    const { stage } = on;
    const lost = ['node-2', 'node-3'].map((name) => stage.cluster.node(name));
    const page = on.open('lost-majority.md');
    await page.follow('What happens by itself', {
      events: { 'node-2 and node-3 die': () => Promise.all(lost.map((node) => node.kill())) },
      any: ['PREVIOUS', 'BECAUSE'],
    });
    assert.equal((await stage.status('hall')).assignment?.node, 'node-2');
    await page.follow('When they do not come back');
    const comeBack = { 'node-2 and node-3 start again': () => Promise.all(lost.map((node) => node.start())) };
    await page.follow('When they come back later', { events: comeBack });
    await page.follow('The same through the API of the recorders', {
      events: { 'node-2 and node-3 die': () => Promise.all(lost.map((node) => node.kill())) },
    });
    await page.follow('When they come back later', { events: comeBack });
    assert.ok(stage.lostSeconds('gate') <= NOTHING_SECONDS);
  });

  test('a node is drained by kubectl, restarted and used again; nothing is lost', async () => {
    const { stage } = on;
    const page = on.open('drain.md');
    const node = stage.cluster.node('node-2');
    await page.follow('kubectl drain', {
      events: { 'node-2 restarts': () => node.kill().then(() => node.start()) },
      any: ['NODE'],
    });
    for (const camera of ['gate', 'hall']) assert.ok(stage.lostSeconds(camera) <= NOTHING_SECONDS, camera);
  });

  test('votes are set by hand, also the first ones of a pool', async () => {
    const { stage } = on;
    const { api } = stage.cluster;
    const resources = `/apis/${API_VERSION}/namespaces/kube-nvr`;
    const setMode = (mode: string): Promise<unknown> =>
      api.patch(`${resources}/recorderpools/default`, 'merge', { spec: { membership: { mode } } });
    const page = on.open('votes.md');
    const events = {
      'a pool with membership.mode Manual is new': async () => {
        await setMode('Manual');
        for (const node of NODES) {
          await api.patch(`${resources}/recordernodes/${node}`, 'merge', { spec: { role: 'Learner' } });
        }
      },
    };
    await page.follow('The first votes, through the API', { events });
    await page.follow('The same with kubectl', { events });
    await setMode('Automatic');
  });

  test('the archive is moved to another disk without a loss, and to another directory', async () => {
    const { stage } = on;
    const { root } = stage.cluster.node('node-1');
    const [now, next, old] = ['mnt/archive', 'mnt/new', 'mnt/old'].map((path) => join(root, path));
    const before = stage.files('node-1', 'gate');
    const page = on.open('move-archive.md');
    await page.follow('To another disk', {
      events: {
        'the new disk is mounted at /mnt/new': () => mkdirSync(next!),
        'the new disk is mounted at /mnt/archive, in place of the old one': () =>
          execFileSync('bash', ['-c', 'mv "$0" "$2" && mv "$1" "$0"', now!, next!, old!]),
      },
      // Which node has fewer cameras depends on whether hall is at home.
      any: ['NODE'],
    });
    for (const camera of ['gate', 'hall']) {
      assert.ok(stage.lostSeconds(camera) <= NOTHING_SECONDS, camera);
    }
    stage.archivePath = '/mnt/footage';
    await page.follow('To another directory', { any: ['NODE', 'LEADER', 'PREVIOUS', 'BECAUSE'] });
    for (const file of before) assert.ok(await stage.plays('node-1', file), file);
  });
});

suite('docs/operations, the longer pages', { skip: MISSING || SHORT }, () => {
  const on = ground({ shared: false });

  test('a node whose disk is full hands over its cameras, and gets them back when there is space', async () => {
    const { stage } = on;
    const stranger = join(stage.archive('node-3'), 'stranger');
    await stage.smallDisk('node-3', 128);
    await stage.move('gate', 'node-3');
    const page = on.open('disk-full.md');
    await page.follow('What happens by itself', {
      events: {
        'something else fills the disk of node-3, which records gate': () => fill(stranger),
        'what filled it is removed': () => rmSync(stranger),
      },
    });
  });

  test('an upgrade takes one node at a time and loses nothing; a bad one stops at its first node and is rolled back', async () => {
    const { stage } = on;
    const page = on.open('upgrade.md');
    // Which node's turn comes first depends on who leads.
    const places = { any: ['NAME', 'NODE', 'PREVIOUS', 'LEADER'], exact: ['VERSION'] };
    await page.follow('To another version', places);
    await page.follow('A version that does not work', places);
    for (const camera of ['gate', 'hall']) {
      assert.ok(stage.lostSeconds(camera) <= NOTHING_SECONDS, camera);
    }
  });

  test('a lost cluster is restored from manifests and finds its archives', async () => {
    const { stage } = on;
    const token = await stage.token();
    const before = NODES.flatMap((node) => stage.files(node, 'gate').map((file) => ({ node, file })));
    const page = on.open('restore.md');
    await page.follow('A cluster that was lost, with its archives kept', {
      events: { 'the cluster is lost; the disks of the nodes are not': () => stage.loseCluster() },
    });
    assert.equal(await stage.token(), token);
    for (const { node, file } of before) assert.ok(await stage.plays(node, file), `${node} ${file}`);
  });

  test('nodes are added and removed, and one that does not work as a member is released and added again', async () => {
    const { stage } = on;
    const { cluster } = stage;
    const page = on.open('nodes.md');
    await page.follow('A node is added', { events: { 'node-4 joins the cluster': () => cluster.addNode() } });
    await page.follow('A node is removed', {
      events: { 'node-1 is switched off': () => cluster.node('node-1').kill() },
      any: ['NODE'],
    });
    for (const camera of ['gate', 'hall']) {
      assert.ok(stage.lostSeconds(camera) <= NOTHING_SECONDS, camera);
    }
    await page.follow('A node that does not work as a member', { any: ['READY', 'REASON'] });
    await Promise.all(['gate', 'hall'].map((camera) => stage.untilRecorded(camera)));
  });
});

/** Until nothing more goes in. */
function fill(path: string): void {
  const block = Buffer.alloc(64 * 1024, 1);
  const fd = openSync(path, 'w');
  try {
    for (;;) writeSync(fd, block);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  } finally {
    closeSync(fd);
  }
}
