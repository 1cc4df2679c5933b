// `recorder probe`, captures and their replay, and the doctor of a running recorder, with the scripted camera.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { parseCapture } from '../../recorder/probe/capture.ts';
import type { ProbeReport } from '../../recorder/probe/report/report.ts';
import { startCamera } from '../camera/camera.ts';
import { EdgeCamera } from '../camera/edge-camera.ts';
import type { CameraOptions } from '../camera/options.ts';
import { startReplay } from '../camera/replay.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const CAMERAS = new URL('../../docs/cameras.md', import.meta.url);

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function recorderProbe(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, 'probe', ...args], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

async function camera(t: TestContext, options: CameraOptions = {}) {
  const tracks = [videoTrack(await videoMedia('h264'), { mtu: 500 }), audioTrack(await audioMedia('aac'))];
  const started = await startCamera({ tracks, pace: 'realtime', ...options });
  t.after(() => started.close());
  return started;
}

async function probed(url: string, ...args: string[]): Promise<ProbeReport> {
  const { code, stdout, stderr } = await recorderProbe(url, '--json', '--seconds', '7', ...args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as ProbeReport;
}

test('probe says what a camera is, and its capture played back is that camera again, without what is secret', async (t) => {
  const directory = workspace(t);
  const file = join(directory, 'capture.gz');
  const login = { username: 'admin', password: 's3cr-et', challenges: [{ scheme: 'digest' as const }] };
  const { url } = await camera(t, { credentials: login });
  const original = await probed(url.replace('://', '://admin:s3cr-et@'), '--capture', file);
  assert.equal(original.state, 'recording');
  assert.deepEqual(original.login, ['Digest MD5']);
  assert.match(original.recorded.video?.codec ?? '', /^avc1\./);
  assert.match(original.recorded.audio?.codec ?? '', /^mp4a\./);
  const [video, audio] = original.streams;
  assert.ok(video && audio && video.frames > 60 && audio.frames > 40, JSON.stringify(original.streams));
  assert.deepEqual([video.lost, video.malformed, video.marker, video.sources], [0, 0, 'last-packet', 1]);
  assert.ok(Math.abs((video.clock_ratio ?? 0) - 1) < 0.05, `clock ratio ${video.clock_ratio}`);
  assert.equal(video.key_frame_seconds?.usual, 1);

  const text = gunzipSync(await readFile(file)).toString();
  for (const secret of ['admin', 's3cr', '127.0.0.1']) assert.ok(!text.includes(secret), `${secret} in the capture`);
  const capture = parseCapture(await readFile(file));
  await using replay = await startReplay(capture);
  const again = await probed(replay.url, '--seconds', '9');
  const [videoAgain, audioAgain] = again.streams;
  assert.equal(videoAgain?.packets, replay.packets(0));
  assert.equal(audioAgain?.packets, replay.packets(1));
  assert.deepEqual(again.recorded, original.recorded);
  assert.ok(
    Math.abs((videoAgain?.frames ?? 0) - video.frames) <= 1,
    `${videoAgain?.frames} of ${video.frames} pictures`,
  );
});

const MISTAKES: readonly { readonly row: number; readonly options: CameraOptions }[] = [
  { row: 40, options: { rtpInfo: null } },
  { row: 52, options: { onPacket: (packet, { packetIndex }) => (packetIndex % 40 === 39 ? [] : packet) } },
  {
    row: 54,
    options: {
      onPacket(packet) {
        packet[1] = (packet[1] as number) & 0x7f;
        return packet;
      },
    },
  },
  { row: 47, options: { pace: 0.8 } },
];

test('probe names the rows of docs/cameras.md that a camera does', async (t) => {
  const table = await readFile(CAMERAS, 'utf8');
  const reports = await Promise.all(
    MISTAKES.map(async ({ row, options }) => ({ row, report: await probed((await camera(t, options)).url) })),
  );
  for (const { row, report } of reports) {
    const rows = report.rows.map((found) => found.row);
    assert.ok(rows.includes(row), `row ${row} is not among ${rows.join(', ')}`);
    for (const found of rows)
      assert.match(table, new RegExp(`^\\| ${found} +\\|`, 'm'), `docs/cameras.md has no row ${found}`);
  }
});

test('probe of a camera that refuses says why, with exit code 1, and a URL that is none is a usage error', async (t) => {
  const { url } = await camera(t, { credentials: { username: 'a', password: 'b', challenges: [{ scheme: 'basic' }] } });
  const refused = await recorderProbe(url.replace('://', '://a:wrong@'), '--seconds', '5');
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stdout, /\(refused-login\)/);
  assert.match(refused.stdout, /^login +Basic$/m);
  assert.ok(!refused.stdout.includes('wrong'), refused.stdout);
  for (const args of [['http://x/'], [url, '--seconds', '3'], [url, '--transport', 'x'], []]) {
    const { code, stderr } = await recorderProbe(...args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^(?:URL|--seconds|--transport|expected one URL)/);
  }
});

test('a camera that is being recorded is examined on its own connection, and recorded on', async (t) => {
  const gate = await camera(t);
  await using recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      cameras: [
        { id: 'gate', source: gate.url },
        { id: 'off', source: gate.url, enabled: false },
      ],
    },
  });
  await recorder.untilRecording('gate');
  const [report, busy] = await Promise.all([
    recorder.get('/api/cameras/gate/probe?seconds=3') as Promise<ProbeReport>,
    until(
      'the doctor is busy',
      async () => (await recorder.fetch('/api/cameras/gate/capture?seconds=1')).status === 409,
    ),
  ]);
  void busy;
  const [video] = report.streams;
  assert.ok(video && video.frames > 20 && video.lost === 0, JSON.stringify(video));
  assert.match(report.recorded.video?.codec ?? '', /^avc1\./);
  assert.equal(report.answers.find(({ method }) => method === 'DESCRIBE')?.status, 200);

  const file = Buffer.from(await (await recorder.fetch('/api/cameras/gate/capture?seconds=2')).arrayBuffer());
  assert.ok(parseCapture(file).lines.some((line) => 'rtp' in line && line.rtp !== undefined));
  assert.equal((await recorder.fetch('/api/cameras/none/probe')).status, 404);
  assert.equal((await recorder.fetch('/api/cameras/off/probe')).status, 409);
  assert.equal((await recorder.fetch('/api/cameras/gate/probe?seconds=x')).status, 400);
  // One connection a camera: the doctor makes none of its own.
  assert.equal(gate.methods.filter((method) => method === 'PLAY').length, 1);
});

test('probe says whether a camera has a memory of its own', async (t) => {
  const edge = await EdgeCamera.start({ pace: 'realtime' });
  t.after(() => edge.close());
  const { code, stdout, stderr } = await recorderProbe(edge.camera.url, '--seconds', '5', '--onvif', edge.device.url);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^its own memory: yes, ONVIF search and replay \(Profile G\), /m);
  assert.match(stdout, /^events: no, the camera has no ONVIF service for events$/m);
});
