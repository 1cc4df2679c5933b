// The second stream of a camera: connected while somebody watches it, and nothing of it touches the recording.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { startCamera } from '../camera/camera.ts';
import { decodeFrameNumbers } from '../camera/frame-numbers.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { GstreamerCameras, gstreamerMissing } from '../support/gstreamer-cameras.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

interface CameraAnswer {
  readonly state: string;
  readonly viewers: number;
  readonly preview: {
    readonly state: string;
    readonly reason: { readonly code: string } | null;
    readonly codecs: { readonly mime: string | null; readonly video: { readonly width: number } | null };
    readonly viewers: number;
  } | null;
}

const cameraOf = async (recorder: RecorderProcess, id: string): Promise<CameraAnswer> =>
  (await (await fetch(`${recorder.url}/api/cameras/${id}`)).json()) as CameraAnswer;

class Watcher {
  readonly socket: WebSocket;
  readonly messages: Buffer[] = [];
  closed: string | undefined;

  constructor(t: TestContext, recorder: RecorderProcess, id: string, query = '?quality=preview') {
    this.socket = new WebSocket(`${recorder.url.replace('http', 'ws')}/websocket/${id}${query}`);
    this.socket.on('message', (data: Buffer) => this.messages.push(data));
    this.socket.on('close', (code, reason) => (this.closed = `${code} ${reason.toString()}`));
    t.after(() => this.socket.terminate());
  }

  async close(): Promise<void> {
    this.socket.close();
    await once(this.socket, 'close');
  }
}

test(
  'a preview is connected once while two watch, and not at all while nobody does',
  { skip: gstreamerMissing() },
  async (t) => {
    await using cameras = await GstreamerCameras.start([
      { name: 'main', video: 'h265', audio: 'none', gop: 25, width: 640, height: 360 },
      { name: 'small', video: 'h264', audio: 'aac', gop: 25, width: 320, height: 180 },
    ]);
    const directory = workspace(t);
    await using recorder = await RecorderProcess.start({
      directory,
      config: { cameras: [{ id: 'gate', source: cameras.url('main'), preview: { source: cameras.url('small') } }] },
    });
    await until('it records', async () => (await cameraOf(recorder, 'gate')).state === 'recording');
    assert.equal(await cameras.sessions(), 1);
    const { preview: idle } = await cameraOf(recorder, 'gate');
    assert.deepEqual(idle, {
      state: 'idle',
      reason: null,
      codecs: { video: null, audio: null, mime: null },
      bitrate: 0,
      viewers: 0,
      recording: null,
    });

    const watchers = [new Watcher(t, recorder, 'gate'), new Watcher(t, recorder, 'gate')];
    await until('both see it', () => watchers.every(({ messages }) => messages.length > 60));
    assert.equal(await cameras.sessions(), 2);
    const live = await cameraOf(recorder, 'gate');
    assert.deepEqual([live.preview?.state, live.preview?.viewers, live.viewers], ['live', 2, 0]);
    assert.match(live.preview?.codecs.mime ?? '', /^video\/mp4; codecs="avc1\.[0-9a-f]{6}, mp4a\.40\.2"$/);
    const file = join(directory, 'preview.mp4');
    writeFileSync(file, Buffer.concat(watchers[0]!.messages));
    const streams = execFileSync('ffprobe', [
      '-v',
      'error',
      '-show_entries',
      'stream=codec_name,width',
      '-of',
      'csv=p=0',
      file,
    ]);
    assert.deepEqual(streams.toString().trim().split(/\s+/), ['h264,320', 'aac']);
    const metrics = await (await fetch(recorder.metricsUrl)).text();
    assert.match(metrics, /^kube_nvr_camera_preview_connected\{camera="gate"\} 1$/m);
    assert.match(metrics, /^kube_nvr_camera_preview_viewers\{camera="gate"\} 2$/m);
    assert.match(metrics, /^kube_nvr_camera_preview_received_bytes_total\{camera="gate"\} [1-9]/m);

    for (const watcher of watchers) await watcher.close();
    await until('it is disconnected', async () => (await cameras.sessions()) === 1);
    const after = await cameraOf(recorder, 'gate');
    assert.deepEqual([after.preview?.state, after.preview?.codecs.video?.width], ['idle', 320]);
    assert.match(
      await (await fetch(recorder.metricsUrl)).text(),
      /^kube_nvr_memory_budget_used_bytes\{kind="previews"\} 0$/m,
    );
  },
);

test('viewers and the state say that the camera refuses the preview, and the recording continues', async (t) => {
  await using camera = await startCamera({ pace: 'realtime', maxSessions: 1 });
  await using recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      cameras: [
        { id: 'gate', source: camera.url, preview: { source: camera.url } },
        { id: 'yard', source: 'rtsp://127.0.0.1:1/' },
      ],
    },
  });
  await until('it records', async () => (await cameraOf(recorder, 'gate')).state === 'recording');
  const watcher = new Watcher(t, recorder, 'gate');
  await until('it is refused', () => watcher.closed);
  assert.equal(watcher.closed, '4503 the camera does not deliver its preview (too-many-streams)');
  const { state, preview } = await cameraOf(recorder, 'gate');
  assert.deepEqual([state, preview?.state, preview?.reason?.code], ['recording', 'failed', 'too-many-streams']);
  const requests = camera.requests.length;
  const again = new Watcher(t, recorder, 'gate');
  await until('it is refused again', () => again.closed);
  assert.ok(!camera.requests.slice(requests).some(({ method }) => method === 'DESCRIBE'), 'the camera is left alone');
  const main = new Watcher(t, recorder, 'gate', '');
  await until('the main stream is there', () => main.messages.length > 25);
  assert.match(
    await (await fetch(recorder.metricsUrl)).text(),
    /^kube_nvr_camera_preview_failures_total\{camera="gate",reason="too-many-streams"\} 1$/m,
  );

  assert.equal((await cameraOf(recorder, 'yard')).preview, null);
  const none = new Watcher(t, recorder, 'yard');
  await until('there is none', () => none.closed);
  assert.equal(none.closed, '4406 the camera has no preview');
});

test('a recorded preview is separate footage: a lower variant, which remains when the main footage is removed', async (t) => {
  const tracksOf = async (name: 'h264-large' | 'h264-small') => [videoTrack(await videoMedia(name))];
  await using large = await startCamera({ pace: 'realtime', tracks: await tracksOf('h264-large') });
  await using small = await startCamera({ pace: 'realtime', tracks: await tracksOf('h264-small') });
  const tokens = ['gate', 'yard'].map((id) => ({
    name: id,
    role: 'viewer',
    sha256: createHash('sha256').update(id).digest('hex'),
    cameras: [id],
  }));
  const camera = {
    id: 'gate',
    source: large.url,
    preview: { source: small.url, recorded: true, retention: { maxAge: '90d' } },
  };
  const config = { auth: { mode: 'token', tokens }, archive: { segmentDuration: '1s' }, cameras: [camera] };
  const directory = workspace(t);
  await using first = await RecorderProcess.start({ directory, config });
  const get = async (path: string, token = 'gate', recorder = first): Promise<Response> =>
    fetch(`${recorder.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  const startsOf = async (id: string, recorder = first): Promise<number[]> => {
    const answer = await get(`/api/archive/${id}/segments`, 'gate', recorder);
    if (answer.status !== 200) return [];
    const { archive } = (await answer.json()) as { archive: { start_ms: number }[] };
    return archive.map((segment) => segment.start_ms).sort((a, b) => a - b);
  };
  const starts = () => Promise.all(['gate', 'gate~preview'].map((id) => startsOf(id)));
  await until('both have files', async () => (await starts()).every(({ length }) => length >= 4));

  const since = Math.floor(Math.max(...(await starts()).map(([one = 0]) => one)) / 1000);
  const interval = `from=${since}&to=${since + 3}`;
  const variants = await get(`/playback/hls/gate/variants.m3u8?${interval}`);
  assert.equal(variants.headers.get('content-type'), 'application/vnd.apple.mpegurl');
  const lines = (await variants.text()).split('\n');
  const [main, preview] = lines.filter((line) => line.startsWith('#EXT-X-STREAM-INF:'));
  assert.match(main ?? '', /BANDWIDTH=\d+,CODECS="avc1\.[0-9a-f]{6}",RESOLUTION=640x360$/);
  assert.match(preview ?? '', /BANDWIDTH=\d+,CODECS="avc1\.[0-9a-f]{6}",RESOLUTION=160x96$/);
  const addressesIn = (text: string): string[] => text.split('\n').filter((line) => /^[^#]/.test(line));
  assert.deepEqual(addressesIn(lines.join('\n')), [`index.m3u8?${interval}`, `../gate~preview/index.m3u8?${interval}`]);
  const bandwidths = [main, preview].map((line) => Number(/BANDWIDTH=(\d+)/.exec(line ?? '')?.[1]));
  assert.ok((bandwidths[0] as number) > 2 * (bandwidths[1] as number), bandwidths.join(' '));
  const probed = execFileSync('ffprobe', [
    '-v',
    'error',
    '-show_entries',
    'stream=codec_name,width',
    '-of',
    'csv=p=0',
    `${first.url}/playback/hls/gate/variants.m3u8?${interval}&access_token=gate`,
  ]);
  const streams = new Set(probed.toString().trim().split(/\s+/).filter(Boolean));
  assert.deepEqual([...streams].sort(), ['h264,160', 'h264,640']);

  const foreign = await get('/api/archive/gate~preview/segments', 'yard');
  assert.deepEqual(
    ((await foreign.json()) as { archive: unknown[] }).archive,
    [],
    'the token does not cover the camera',
  );
  assert.equal((await get(`/playback/hls/gate~preview/index.m3u8?${interval}`)).status, 200);
  assert.equal((await get(`/playback/hls/gate~preview/index.m3u8?${interval}`, 'yard')).status, 404);
  assert.equal((await get(`/playback/hls/gate/variants.m3u8?${interval}`, 'yard')).status, 404);
  assert.equal((await first.stop()).code, 0);

  // From now on next to nothing of the main stream is kept.
  first.rewriteConfig({ ...config, cameras: [{ ...camera, record: { retention: { maxSize: 1 } } }] });
  await using second = await first.restart();
  await until('the main footage of that time is gone', async () => {
    const [oldest = 0] = await startsOf('gate', second);
    return oldest > (since + 4) * 1000;
  });
  const left = await get(`/playback/hls/gate/variants.m3u8?${interval}`, 'gate', second);
  assert.deepEqual(addressesIn(await left.text()), [`../gate~preview/index.m3u8?${interval}`]);
  const movie = join(directory, 'left.mp4');
  const window = await get(`/playback/window/gate~preview.mp4?${interval}`, 'gate', second);
  assert.equal(window.status, 200);
  writeFileSync(movie, Buffer.from(await window.arrayBuffer()));
  const numbers = await decodeFrameNumbers(movie);
  assert.ok(numbers.length > 50 && numbers.every((number) => number >= 1000), 'pictures of the preview');
  const timeline = (await (
    await get(`/api/archive/timeline?camera=gate&camera=gate~preview&${interval}&resolution_ms=0`, 'gate', second)
  ).json()) as { cameras: { camera_id: string; spans: unknown[]; kept_from_ms: number | null }[] };
  const [gone, kept] = timeline.cameras;
  assert.deepEqual([gone?.spans, kept?.camera_id, kept?.spans.length], [[], 'gate~preview', 1]);
  assert.ok((kept?.kept_from_ms ?? Infinity) <= (since + 1) * 1000);
  assert.equal((await second.stop()).code, 0);
});
