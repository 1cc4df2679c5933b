// What a recorder answers, over the parts of a real one without cameras.

import { LookStore } from '../activity/store.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Alarms } from '../alarms/alarms.ts';
import { randomBytes } from 'node:crypto';
import { VirtualClock } from '../../base/clock.ts';
import { Registry } from 'prom-client';
import { LiveLimits } from '../live/limits.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { silentLog } from '../../base/log.ts';
import { LevelSwitch } from '../../base/log-level.ts';
import { acrossBorder } from '../../test/support/border.ts';
import { workspace } from '../../test/support/workspace.ts';
import { loadConfig } from '../config/load.ts';
import { EndedSessions } from '../http/ended-sessions.ts';
import { CurrentConfig } from '../config/current-config.ts';
import { openAccess } from './access.ts';
import { openAudit } from './audit.ts';
import { answersOf } from '../engine/answers.ts';
import { openEngine, type OpenedEngine } from '../engine/engine.ts';
import { takeState } from '../engine/owner.ts';
import { LiveStreams } from './live-streams.ts';
import { MemberSessions } from './member-sessions.ts';
import { Serving, type ServingParts } from './serving.ts';
import { openAlarmLines, openFrontStorage, openHappenings } from './storage.ts';
import { readTrust } from './trust.ts';
import { AT_ONCE } from '../model/engine.ts';
import { WantedCameras } from '../cameras/wanted-cameras.ts';

const ANY_PORT = '127.0.0.1:0';

interface Stage {
  readonly serving: Serving;
  readonly clock: VirtualClock;
  readonly parts: ServingParts;
  readonly engine: OpenedEngine;
}

async function stage(t: TestContext, settings: object = {}): Promise<Stage> {
  const directory = workspace(t);
  const file = join(directory, 'config.yaml');
  const content = {
    record_path: join(directory, 'archive'),
    workDir: join(directory, 'work'),
    nodeName: 'node',
    listen: ANY_PORT,
    playback: { listen: ANY_PORT },
    metrics: { listen: ANY_PORT },
    ...settings,
  };
  await mkdir(content.record_path);
  await writeFile(file, JSON.stringify(content));
  const config = await loadConfig(file);
  const clock = new VirtualClock();
  const state = await takeState(config, { log: silentLog });
  const deps = { clock, log: silentLog, logLevels: new LevelSwitch('info'), version: '1.2.3', owner: state.owner };
  const current = new CurrentConfig(config);
  const wanted = new WantedCameras(current, silentLog);
  const memory = new MemoryBudget(Infinity);
  const around = { ...deps, registry: new Registry(), memory };
  const storage = await openFrontStorage(current, { ...around, camerasChanged: () => wanted.changed() });
  const { events, database: rows } = storage;
  const liveLimits = new LiveLimits({}, memory);
  const front = {
    tell: events.tell,
    openGaps: events.openGaps,
    sessionsAre: () => {},
    live: () => {},
    keep: async () => {},
  };
  const opened = await openEngine(current, wanted, { ...around, front, rows });
  const { archive, gaps, cameras } = opened;
  const { registry } = around;
  const audit = openAudit(config, { ...deps, copy: undefined, registry });
  const ownKey = randomBytes(32);
  const ended = new EndedSessions(clock);
  const memberSessions = new MemberSessions();
  const known = { ownKey, ended, memberSessions, cameraIds: () => new Set<string>() };
  const access = await openAccess(config, { ...deps, registry, audit: audit.sink, ...known });
  const engine = acrossBorder(answersOf(opened, { front, member: undefined, refused: () => [] }), AT_ONCE);
  const beside = { ...deps, archive: engine.archive };
  const happenings = openHappenings({ ...beside, told: events.happened });
  const lines = openAlarmLines(beside);
  const alarms = new Alarms({ journal: events.journal, lines, clock, log: silentLog });
  const keepAwake = () => () => {};
  const parts = {
    ...storage,
    engine,
    cameras: new LiveStreams({ engine: engine.cameras, limits: liveLimits, clock }),
    keepAwake,
    current,
    registry,
    happenings,
    looks: new LookStore(archive.stateRoot, nodeFileSystem),
    alarms,
    cameraEditor: undefined,
    audit,
  };
  const { auth, issuers } = access;
  const trust = { ...(await readTrust(config, undefined, undefined)), auth, issuers, own: undefined };
  const serving = new Serving(config, parts, trust, deps);
  t.after(async () => {
    await opened.errands.close();
    await serving.close();
    access.auth.close();
    await access.close();
    await audit.close();
    await archive.close();
    await gaps.close();
    await cameras.close();
    await events.close();
    state.lock.release();
  });
  return { serving, clock, parts, engine: opened };
}

test('addresses are known once it listens, and it answers until it is closed', async (t) => {
  const { serving } = await stage(t);
  assert.throws(() => serving.address, /it listens/);
  await serving.open();
  const { address, playbackAddress, routes } = serving;
  const { status } = await fetch(new URL('/api/health/live', address));
  assert.equal(status, 200);
  assert.equal((await fetch(new URL('/hls/gate.m3u8', playbackAddress))).status, 401);
  assert.deepEqual(Object.keys(routes), ['api', 'playback', 'metrics']);
  await serving.close();
  await assert.rejects(fetch(new URL('/api/health/live', address)));
});

test('an address that is taken is an error', async (t) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const address = other.address();
  assert.ok(typeof address === 'object' && address);
  const { serving } = await stage(t, { metrics: { listen: `127.0.0.1:${address.port}` } });
  await assert.rejects(serving.open(), { code: 'EADDRINUSE' });
});

test('warnings come and go as events, looked at once a second', async (t) => {
  const { serving, clock, parts } = await stage(t, { listen: '0.0.0.0:0' });
  const told: (readonly string[])[] = [];
  const { events } = parts;
  t.mock.method(events, 'warningsAre', (warnings: readonly { readonly code: string }[]) => {
    told.push(warnings.map(({ code }) => code));
  });
  serving.tick();
  serving.tick();
  assert.equal(told.length, 1);
  assert.ok(told[0]?.includes('no-tls'));
  clock.advance(1_000);
  serving.tick();
  assert.equal(told.length, 2);
});

test('whatever a front asks its engine, and what it is answered, a message between two processes can carry', async (t) => {
  const cameras = [{ id: 'gate', source: 'rtsp://127.0.0.1:1/', enabled: false }];
  const { serving, engine } = await stage(t, { auth: { mode: 'none' }, cameras });
  await engine.archive.recover();
  await engine.cameras.apply(engine.wanted.list().cameras);
  await serving.open();
  const asked = async (
    path: string,
    init: RequestInit = {},
  ): Promise<{ readonly status: number; readonly text: string }> => {
    const answer = await fetch(new URL(path, serving.address), init);
    return { status: answer.status, text: await answer.text() };
  };
  const window = 'from=1000&to=2000';
  for (const path of [
    '/api/cameras',
    '/api/cameras/gate',
    `/api/archive/gate/segments?${window}`,
    `/api/archive/gate/gaps?${window}`,
    `/api/archive/timeline?${window}&camera=gate`,
    '/api/archive/protections',
    '/api/health/ready',
  ]) {
    const { status, text } = await asked(path);
    assert.equal(status, 200, `${path}: ${text}`);
  }
  const made = await asked(`/api/archive/gate/protect?${window}`, { method: 'POST' });
  assert.equal(made.status, 201, made.text);
});
