// Cases whose cameras are on several nodes: one camera of this archive, one of which another recorder has the footage.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { caseStage, numberAt } from '../../test/support/case-stage.ts';
import { join, numberedVideo, recordedPart, wallWindow, WALL_START_MS } from '../../test/support/joined-file.ts';
import { PeerServer, status } from '../../test/support/peer-server.ts';
import { workspace } from '../../test/support/workspace.ts';
import { caseAssemblies } from './case-assemblies.ts';
import { isAssembled, type CameraAssembly, type JobRequest } from './job.ts';
import { PEER_LIMITS } from './peer-part.ts';

const WINDOW = { fromMs: WALL_START_MS + 2_000, toMs: WALL_START_MS + 12_000 };
const AWAY = { nodeId: 'node-3', fromMs: WALL_START_MS + 5_000, toMs: WINDOW.toMs, isOnline: false };
const CAUSE = 'on-node-away';

/** `hall` was recorded by another node, for the first 3 s of the window. */
async function stage(t: TestContext) {
  const peer = await PeerServer.start(t);
  const video = numberedVideo(workspace(t), { firstNumber: 500, encoder: 'keyint=25:min-keyint=25:scenecut=0' });
  const { bytes } = await join([recordedPart(video)], wallWindow(0, 3_000));
  const times = { from_ms: WINDOW.fromMs, to_ms: WALL_START_MS + 5_000 };
  peer.serve('e7', { camera_id: 'hall', ...times, kind: 'export', state: 'done', size_bytes: bytes.length }, bytes);
  const { address } = peer;
  const hall: CameraAssembly = {
    cameraId: 'hall',
    parts: [{ peerAddress: address, peerJobId: 'e7' }],
    withCredential: true,
    known: { gaps: [{ fromMs: AWAY.fromMs, toMs: AWAY.toMs, cause: CAUSE }], elsewhere: [AWAY] },
  };
  const request = (assemblies: readonly CameraAssembly[]): JobRequest => ({
    kind: 'export',
    cameraId: 'gate',
    case: { cameras: ['gate', 'hall', 'porch'], assemblies },
    ...WINDOW,
  });
  const shares: number[] = [];
  const { make } = await caseStage(t);
  const directory = joinPath(workspace(t), 'parts');
  const making = (assemblies: readonly CameraAssembly[]) => {
    const access = { members: () => [{ address }], scheme: 'http' as const, silenceMs: 2_000 };
    const report = { progress: (share: number) => void shares.push(share), window: async () => {} };
    const limits = { ...PEER_LIMITS, giveUpMs: 500, pollMs: 20 };
    const fetching = { access, limits, clock: systemClock, spareBytes: async () => Infinity, version: '1', report };
    const never = new AbortController().signal;
    const assembled = caseAssemblies(request(assemblies), 'Bearer one', directory, fetching, never);
    return make({ cameraIds: ['gate', 'hall', 'porch'] }, assembled);
  };
  return { peer, hall, shares, making, request };
}

test('a case of all nodes has the footage of another node, fetched once, and says what is on a node that is away', async (t) => {
  const { peer, hall, shares, making } = await stage(t);
  const { path, written, manifest } = await making([hall]);
  assert.deepEqual(
    manifest.cameras.map(({ camera_id, files, reason }) => [camera_id, files.length, reason]),
    [
      ['gate', 1, undefined],
      ['hall', 1, undefined],
      ['porch', 0, 'no node that answers has footage of this camera in the window'],
    ],
  );
  const [, inManifest] = manifest.cameras;
  const [, inJob] = written.outcome.cameras ?? [];
  assert.deepEqual(inJob?.elsewhere, [AWAY]);
  // The part of another recorder ends with its window; the rest is on the node that is away.
  assert.equal(inManifest?.files[0]?.duration_seconds, 3);
  assert.deepEqual([...peer.credentials], ['Bearer one']);
  assert.equal(peer.asked.filter((line) => line.includes('/download')).length, 1, peer.asked.join());
  assert.ok(
    shares.every((share, i) => share <= 1 && share >= (shares[i - 1] ?? 0)),
    shares.join(),
  );
  assert.equal(shares.at(-1), 1);
  const part = written.outcome.parts?.find(({ cameraId }) => cameraId === 'hall');
  assert.ok(part);
  const movie = joinPath(workspace(t), 'hall.mp4');
  writeFileSync(movie, readFileSync(path).subarray(part.offset, part.offset + part.sizeBytes));
  const { numbers, complaints } = await decodePictures(movie);
  assert.deepEqual([numbers[0], numbers.at(-1), complaints], [500, 574, '']);
});

test('a case of all nodes without another node is that of this one', async (t) => {
  const { making, request, hall } = await stage(t);
  const { manifest } = await making([]);
  assert.deepEqual(
    manifest.cameras.map(({ files }) => files.length),
    [1, 0, 0],
  );
  assert.deepEqual([isAssembled(request([])), isAssembled(request([hall]))], [false, true]);
  assert.equal(manifest.cameras[0]?.files[0]?.footage[0]?.from, new Date(WINDOW.fromMs).toISOString());
  assert.equal(numberAt(2_000), 50);
});

test('a case fails with the name of the camera whose part another recorder does not give', async (t) => {
  const { peer, hall, making } = await stage(t);
  peer.routes.set('/api/archive/jobs/e7', status(404));
  await assert.rejects(making([hall]), {
    code: 'peer-failed',
    message: /^camera hall: part 0 from .*: it has no such job \(404\)$/,
    retry: { withoutCamera: 'hall' },
  });
});
