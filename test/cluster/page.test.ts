// The page of a cluster in Chromium: any node shows the cameras of all; whoever watches a camera whose node dies sees it
// again from another node, and plays what both have recorded.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, suite, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startCamera, type Camera } from '../camera/camera.ts';
import { browserMissing, launchBrowser, videoState } from '../support/browser.ts';
import { freePorts } from '../support/recorder-process.ts';
import { PATIENCE_MS, until } from '../support/until.ts';
import { clusterMissing, startCluster, type Cluster } from './cluster.ts';
import { OWN_IMAGES } from './own-images.ts';
import { reportFailure } from './report.ts';
import {
  apply,
  makeArchives,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES,
  startOperator,
  untilAllVote,
  type OwnOperator,
} from './own-operator.ts';

const NODES = ['node-1', 'node-2', 'node-3'];
const HOMES: Readonly<Record<string, string>> = { gate: 'node-1', yard: 'node-2' };
const SLOW_MS = 120_000;
/** Within this time after the death of a node, pages say that its cameras are not recorded: 20 s, and more on a busy machine. */
const HONEST_MS = 40_000;
/** Where to put pictures of the page, to look at. */
const PICTURES = process.env['PICTURES'];

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
const TOKENS = [
  { name: 'ops', role: 'admin', sha256: digest('ops') },
  { name: 'guard', role: 'viewer', sha256: digest('guard'), cameras: ['yard'] },
];

interface ClusterCameras {
  readonly node_id: string;
  readonly current: boolean;
  readonly nodes: readonly { node_id: string; url: string | null; online: boolean }[];
  readonly cameras: readonly {
    id: string;
    node_id: string | null;
    state: string;
    archives: readonly { node_id: string }[];
  }[];
}

let cluster: Cluster;
let camera: Camera;
let operator: OwnOperator;
let browser: Browser;
let logs: string;
let service: Service;

/** One address for all nodes, as a Service of Kubernetes is: each connection goes to a node that takes it. */
class Service {
  readonly #server = createServer((client) => this.#pass(client, [...NODES]));
  readonly url: string;

  private constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<Service> {
    const [port = 0] = await freePorts(1);
    const service = new Service(port);
    service.#server.listen(port, '127.0.0.1');
    await once(service.#server, 'listening');
    return service;
  }

  close(): void {
    this.#server.close();
  }

  #pass(client: Socket, [node = '', ...others]: readonly string[]): void {
    const server = connect({ host: cluster.node(node).address, port: 9997, timeout: 1_000 });
    let isOpen = false;
    server.once('connect', () => {
      isOpen = true;
      server.setTimeout(0);
      client.pipe(server).pipe(client);
    });
    server.on('timeout', () => server.destroy());
    server.on('error', () => {});
    server.on('close', () => (isOpen || others.length === 0 ? client.destroy() : this.#pass(client, others)));
    client.on('error', () => server.destroy());
    client.on('close', () => server.destroy());
  }
}

const urlOf = (node: string): string => `http://${cluster.node(node).address}:9997`;

async function listOn(node: string, token = 'ops'): Promise<ClusterCameras> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${urlOf(node)}/cluster/cameras`, { headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  assert.equal(answer.status, 200);
  return (await answer.json()) as ClusterCameras;
}

/** The footage of `gate` on a node. */
async function footageOf(node: string): Promise<readonly { readonly start_ms: number; readonly end_ms: number }[]> {
  const now = Date.now() / 1000;
  const path = `/api/archive/gate/gaps?from=${now - 600}&to=${now}&local=1&footage=1`;
  const answer = await fetch(`${urlOf(node)}${path}`, { headers: { authorization: 'Bearer ops' } });
  return ((await answer.json()) as { footage: Awaited<ReturnType<typeof footageOf>> }).footage;
}

/** `camera on node: state` of each. */
const briefly = ({ cameras }: ClusterCameras): string[] =>
  cameras.map(({ id, node_id, state }) => `${id} on ${node_id}: ${state}`);

async function open(url: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.request.post(`${url}/api/session`, { data: { token: 'ops' } });
  await page.goto(url);
  return page;
}

/** Name, state and number of cameras of each node, as Health lists them; its warnings are below the state. The wall is shown again afterwards. */
async function nodesOn(page: Page): Promise<string[]> {
  await page.getByRole('link', { name: 'Health', exact: true }).click();
  const rows = page.locator('#nodes tbody tr');
  await rows.nth(NODES.length - 1).waitFor();
  const texts = (await rows.all()).map(async (row) => {
    const cells = await row.locator('th, td').allInnerTexts();
    return cells
      .slice(0, 3)
      .map((text) => text.trim().split('\n')[0])
      .join(' ');
  });
  const nodes = await Promise.all(texts);
  await page.getByRole('link', { name: 'Live', exact: true }).click();
  return nodes;
}

const videoOf = (id: string): string => `[data-camera=${id}] video`;

/** Waits until other pictures than now are on screen. */
async function untilPlaying(page: Page, id: string, timeoutMs = SLOW_MS): Promise<void> {
  let last = -1;
  await until(
    `${id} plays`,
    async () => {
      if ((await page.locator(`[data-camera=${id}].playing`).count()) === 0) return false;
      const { frameNumber, currentTime } = await videoState(page, videoOf(id));
      const moved = last >= 0 && frameNumber >= 0 && frameNumber !== last && currentTime > 0;
      if (frameNumber >= 0) last = frameNumber;
      return moved;
    },
    timeoutMs,
  ).catch(async (error: unknown) => {
    throw new Error(`the page says: ${await page.locator('body').innerText()}`, { cause: error });
  });
}

/** What a page says of the camera `gate` at one moment. */
interface Saying {
  readonly atMs: number;
  /** Undefined while the tile has none, which is how it says that the camera is recorded. */
  readonly badge: string | undefined;
  readonly pill: string;
}

/** Notes from now on what the page says, five times a second; the notes are gone after a reload. */
const note = (page: Page): Promise<unknown> =>
  page.evaluate(`
    window.said = [];
    setInterval(() => {
      const tile = document.querySelector('[data-camera=gate]');
      const badge = tile?.querySelector('.badge')?.textContent;
      const pill = document.querySelector('.pill')?.textContent.trim();
      if (tile) window.said.push({ atMs: Date.now(), badge, pill });
    }, 200);
  `);

const notesOf = async (page: Page): Promise<readonly Saying[]> =>
  (await page.evaluate<readonly Saying[] | undefined>('window.said')) ?? assert.fail('it was reloaded');

/** Of a page that was served by the node that died, until another one answers it, which may not have noticed yet. */
const UNKNOWN = 'State unknown';

/**
 * The tile shows soon after a death that something is wrong, and neither tile nor pill claims from then on that the camera is
 * recorded, until it is. A page that asked last before the death was noticed, and next when the camera was recorded again, has nothing to
 * show. Returns when the tile showed it, or what it showed was true again, in milliseconds after the death.
 */
function assertHonest(notes: readonly Saying[], killedMs: number, recordedMs: number): number {
  const first = notes.find(({ atMs, badge }) => atMs > killedMs && badge !== undefined && badge.trim() !== UNKNOWN);
  const honestMs = Math.min(first?.atMs ?? Infinity, recordedMs) - killedMs;
  assert.ok(honestMs <= HONEST_MS, `${honestMs} ms: ${JSON.stringify(first ?? notes.at(-1))}`);
  if (!first) return honestMs;
  const claims = notes.filter(
    ({ atMs, badge, pill }) =>
      atMs > first.atMs && atMs < recordedMs && (badge === undefined || pill === 'All 2 recorded'),
  );
  assert.deepEqual(claims, []);
  return honestMs;
}

/** What each view of a page says of the node that is away; the page is not reloaded. */
async function assertNamesAway(page: Page, node: string, footageMs: number): Promise<void> {
  const shows = (hash: string, text: string | RegExp): Promise<unknown> =>
    page
      .evaluate(`window.location.hash = ${JSON.stringify(hash)}`)
      .then(() => page.getByText(text).first().waitFor({ timeout: SLOW_MS }));
  const at = new Date(footageMs).toISOString();
  await shows(`#/playback?c=gate&t=${at}&z=10m`, `This footage is on ${node}, which is away.`);
  if (PICTURES) await page.screenshot({ path: join(PICTURES, 'playback-away.png') });
  await shows('#/exports', `${node} is away. Its exports are not listed.`);
  await shows('#/exports?list=protected', `${node} is away. What is protected there is not listed.`);
  await shows('#/health', /Offline for .*/);
  const attention = await page.locator('.warnings').innerText();
  assert.match(attention, new RegExp(`${node}: Offline for .* Check the machine and its network`));
  await page.evaluate(`window.location.hash = '#/live'`);
}

suite('the page of a cluster', { skip: clusterMissing() || browserMissing() }, () => {
  before(async () => {
    logs = mkdtempSync(join(tmpdir(), 'kube-nvr-page-'));
    cluster = await startCluster({ nodes: NODES.length, images: OWN_IMAGES });
    makeArchives(cluster);
    const { controlPlane, addresses } = cluster;
    await controlPlane.installKinds();
    await controlPlane.api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
      metadata: { name: 'tokens' },
      stringData: { 'tokens.yaml': JSON.stringify(TOKENS) },
    });
    camera = await startCamera({ pace: 'realtime', host: addresses.cameras });
    operator = await startOperator(controlPlane, logs);
    const cameras = Object.entries(HOMES).map(([id, preferredNode]) =>
      resource('Camera', id, {
        displayName: `The ${id}`,
        source: camera.url,
        transport: 'Tcp',
        placement: { preferredNode },
        record: { segmentSeconds: 60 },
      }),
    );
    service = await Service.start();
    const auth = { mode: 'Token', tokensSecretRef: { name: 'tokens' } };
    const pool = poolOfAllNodes({ auth, origins: [service.url] });
    await apply(controlPlane, [pool]);
    // All nodes have to be there, or a camera is given to another than its home.
    await until(
      'three nodes report',
      async () => (await Promise.all(NODES.map((node) => listOn(node)))).every(({ nodes }) => nodes.length === 3),
      SLOW_MS,
    );
    await untilAllVote(cluster);
    await apply(controlPlane, cameras);
    browser = await launchBrowser();
  });

  afterEach(reportFailure(() => cluster));
  after(async () => {
    await browser?.close();
    service?.close();
    await operator?.program.kill();
    await camera?.close();
    await cluster?.close();
    rmSync(logs, { recursive: true, force: true });
  });

  test('every node lists the cameras of all, as far as they concern the token', async () => {
    const expected = ['gate on node-1: recording', 'yard on node-2: recording'];
    for (const node of NODES) {
      await until(
        `${node} knows both`,
        async () => briefly(await listOn(node)).join() === expected.join(),
        SLOW_MS,
      ).catch(async (error: unknown) => {
        throw new Error(JSON.stringify(await listOn(node)), { cause: error });
      });
      const { node_id, current, nodes } = await listOn(node);
      assert.deepEqual([node_id, current], [node, true]);
      assert.deepEqual(
        nodes.map(({ node_id, url, online }) => [node_id, url, online]),
        NODES.map((name) => [name, urlOf(name), true]),
      );
      assert.deepEqual(briefly(await listOn(node, 'guard')), [expected[1]]);
      assert.equal((await fetch(`${urlOf(node)}/cluster/cameras`)).status, 401);
    }
  });

  test('pages of the members and those that the pool names may ask every node, and no others', async () => {
    const ask = async (origin: string): Promise<string | null> => {
      const headers = { origin, authorization: 'Bearer ops' };
      const answer = await fetch(`${urlOf('node-2')}/api/cameras`, { headers });
      return answer.headers.get('access-control-allow-origin');
    };
    assert.equal(await ask(urlOf('node-1')), urlOf('node-1'));
    assert.equal(await ask(service.url), service.url);
    assert.equal(await ask('http://evil.example'), null);
    assert.equal(await ask(`http://${cluster.node('node-1').address}:80`), null);
  });

  test('a viewer sees a camera whose node dies again from another node, at that of a node and of a Service', async (t) => {
    const [page, ofService] = await Promise.all([urlOf('node-3'), service.url].map(open));
    assert.ok(page && ofService);
    for (const one of [page, ofService]) {
      await untilPlaying(one, 'gate');
      await untilPlaying(one, 'yard');
    }
    assert.deepEqual(await nodesOn(page), ['node-1 online 1', 'node-2 online 1', 'node-3 online 0']);
    await Promise.all([page, ofService].map(note));
    const isLong = ({ start_ms, end_ms }: { start_ms: number; end_ms: number }) => end_ms - start_ms > 5_000;
    await until('footage of some seconds', async () => (await footageOf('node-1')).some(isLong), SLOW_MS);
    const killedMs = Date.now();
    await cluster.node('node-1').kill();
    const taken = await until(
      'another node records it',
      async () => {
        const gate = (await listOn('node-2')).cameras.find(({ id }) => id === 'gate');
        return gate?.node_id !== 'node-1' && gate?.state === 'recording' && (gate.node_id ?? false);
      },
      SLOW_MS,
    );
    const since = performance.now();
    const [first] = await until('its first footage', async () => {
      const footage = await footageOf(taken);
      return footage.length > 0 && footage;
    });
    for (const one of [page, ofService]) {
      await untilPlaying(one, 'gate');
      const saidMs = assertHonest(await notesOf(one), killedMs, first!.start_ms);
      t.diagnostic(`a page said ${Math.round(saidMs)} ms after the death that something is wrong`);
    }
    t.diagnostic(`on all screens ${Math.round(performance.now() - since)} ms after ${taken} was seen to record`);
    await untilPlaying(ofService, 'yard');
    await until('the node is said to be away', async () =>
      (await nodesOn(page)).some((node) => node.startsWith('node-1 offline')),
    );
    if (PICTURES) await page.screenshot({ path: join(PICTURES, 'node-away.png') });
    for (const one of [page, ofService]) {
      await assertNamesAway(one, 'node-1', killedMs - 3_000);
      await notesOf(one);
    }
    await ofService.close();

    await cluster.node('node-1').start();
    const { archives } = await until(
      'both nodes tell of footage',
      async () => {
        const gate = (await listOn('node-3')).cameras.find(({ id }) => id === 'gate');
        return gate && gate.archives.length > 1 && gate;
      },
      SLOW_MS,
    );
    assert.deepEqual(archives.map(({ node_id }) => node_id).sort(), ['node-1', taken].sort());
    await page.goto(`${urlOf('node-3')}/#/live?c=gate`);
    // A key that comes before the browser has told of the address is one of the wall.
    await page.locator('.screen[data-camera=gate]').waitFor({ timeout: SLOW_MS });
    await page.keyboard.press('i');
    const recordings = page.locator('.recordings');
    await until(
      'recordings of both are listed',
      async () => {
        const listed = (await recordings.locator('li').allInnerTexts()).join();
        const shown = (await recordings.allInnerTexts()).join();
        assert.ok(listed.includes('node-1') && listed.includes(taken), `shown: ${shown || 'no panel'}`);
        return true;
      },
      SLOW_MS,
    );
    if (PICTURES) await page.screenshot({ path: join(PICTURES, 'cluster.png') });
    await page.close();
  });

  test('a node that this browser cannot reach is watched through the one that served the page', async () => {
    cluster.node('node-2').cutOff('viewers');
    const page = await open(urlOf('node-3'));
    await untilPlaying(page, 'yard');
    cluster.node('node-2').reconnect('viewers');
    await page.close();
  });

  test('a camera that leaves a drained node is seen on from the next one', async () => {
    const page = await open(urlOf('node-3'));
    await untilPlaying(page, 'yard');
    await cluster.controlPlane.api.patch(`${RESOURCES}/recordernodes/node-2`, 'merge', { spec: { drain: true } });
    await until(
      'it is at another node',
      async () => {
        const yard = (await listOn('node-3')).cameras.find(({ id }) => id === 'yard');
        return ![undefined, null, 'node-2'].includes(yard?.node_id);
      },
      SLOW_MS,
    );
    await untilPlaying(page, 'yard');
    await page.close();
  });

  test('a recording that another node has is played from there', async () => {
    const gate = (await listOn('node-2')).cameras.find(({ id }) => id === 'gate');
    const path = '/api/archive/gate/segments?local=1';
    const headers = { authorization: 'Bearer ops' };
    const { filename } = await until('node-1 has a file that is closed', async () => {
      const { archive } = (await (await fetch(`${urlOf('node-1')}${path}`, { headers })).json()) as {
        archive: { filename: string; is_open: boolean }[];
      };
      return archive.find(({ is_open }) => !is_open);
    });
    const stranger = NODES.find((node) => node !== 'node-1' && node !== gate?.node_id) ?? '';
    const playback = (node: string): string => `http://${cluster.node(node).address}:9996`;
    const asked = `${playback(stranger)}/${filename}?access_token=ops`;
    const answer = await fetch(asked, { redirect: 'manual' });
    assert.equal(answer.status, 307, await answer.text());
    assert.match(answer.headers.get('location') ?? '', /access_token=ops.*asked=/);
    const followed = await fetch(asked);
    assert.equal(followed.status, 200);
    assert.ok((await followed.arrayBuffer()).byteLength > 0);
    // What nobody has ends somewhere.
    const nothing = await fetch(`${playback(stranger)}/${filename.replace(/_\d{9}/, '_000000001')}?access_token=ops`);
    assert.equal(nothing.status, 404);
  });
});
