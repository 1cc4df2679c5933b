// What key frames show, in a whole recorder: when something changed in which part of the picture, that nothing did, and what is off.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { encodeVideo } from '../support/encoded-samples.ts';
import { recordedPart } from '../support/joined-file.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

interface Found {
  readonly changes: readonly { readonly start_ms: number; readonly end_ms: number }[];
}

const FILE_MS = 40_000;
/** Something is in the lower right of the picture from the 20th second to the 23rd. */
const BLOCK = ",drawbox=x=iw*0.7:y=ih*0.7:w=iw*0.12:h=ih*0.2:t=fill:color=white:enable='between(t,19.9,23.1)'";

test('footage that was there says when and where something moved, still footage says quiet, and a camera without activity stays as it was', async (t) => {
  const directory = workspace(t);
  const startMs = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;
  const record = (cameraId: string, block: string, atMs = startMs): void => {
    const noisy = `trim=0:0.04,loop=-1:1:0,setpts=N/25/TB${block},noise=alls=6:allf=t`;
    const encoder = 'keyint=25:min-keyint=25:scenecut=0';
    const look = { codec: 'h264', encoderParameters: encoder, size: '320x180', frames: 1000 } as const;
    const video = encodeVideo(directory, { ...look, extra: ['-vf', noisy] });
    const path = join(directory, 'recordings', formatPath({ name: cameraId, cameraId, startMs: atMs }));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, recordedPart(video, { wallStartMs: atMs }));
  };
  record('gate', BLOCK);
  record('hall', '');
  // The newest: it would be the first that is looked at.
  record('yard', BLOCK, startMs + 60_000);
  const cameras = ['gate', 'hall', 'yard'].map((id) => ({
    id,
    source: 'rtsp://127.0.0.1:9/',
    activity: id !== 'yard',
  }));
  const recorder = await RecorderProcess.start({ directory, config: { cameras } });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  const ask = async <T>(path: string, query: string, toMs = startMs + FILE_MS): Promise<T> => {
    const answer = await fetch(`${recorder.url}${path}?from=${startMs / 1000}&to=${toMs / 1000}&${query}`);
    assert.equal(answer.status, 200, await answer.clone().text());
    return (await answer.json()) as T;
  };
  const bands = async (camera: string): Promise<string[]> => {
    const query = `camera=${camera}&activity=1&resolution_ms=0`;
    const { cameras: found } = await ask<{ cameras: { bands: { kind: string }[] }[] }>('/api/archive/timeline', query);
    return found.flatMap((one) => one.bands.map(({ kind }) => kind));
  };
  await until('both are looked at', async () => {
    const found = [...(await bands('gate')), ...(await bands('hall'))];
    return found.includes('active') && found.includes('quiet') && (await bands('hall')).length > 0;
  });
  assert.deepEqual([await bands('gate'), await bands('hall')], [['quiet', 'active', 'quiet'], ['quiet']]);
  const changes = async (camera: string, region: string): Promise<number[][]> => {
    const { changes: found } = await ask<Found>(`/api/cameras/${camera}/activity`, `region=${region}`);
    return found.map((one) => [one.start_ms, one.end_ms].map((ms) => Math.round((ms - startMs) / 1000)));
  };
  const [lowerRight, upperLeft] = ['0.65,0.65,0.9,0.95', '0,0,0.6,0.6'];
  assert.deepEqual(
    [await changes('gate', lowerRight), await changes('gate', upperLeft), await changes('hall', '0,0,1,1')],
    [[[20, 22]], [], []],
  );
  const { cameras: off } = await ask<{ cameras: { bands: unknown[] }[] }>(
    '/api/archive/timeline',
    'camera=yard&activity=1',
    startMs + 60_000 + FILE_MS,
  );
  assert.deepEqual(off[0]?.bands, []);
  assert.deepEqual(
    ['gate', 'hall', 'yard'].map((id) => existsSync(join(recorder.recordPath, '.kube-nvr/activity', id))),
    [true, true, false],
  );
});
