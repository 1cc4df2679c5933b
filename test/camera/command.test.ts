import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { systemClock } from '../../base/clock.ts';
import { SlabPool } from '../../recorder/codec/slab.ts';
import { lookForMemory } from '../../recorder/edge/look.ts';
import { anywhere } from '../../recorder/reach/reach.ts';
import { PATIENCE_MS } from '../support/until.ts';

const run = promisify(execFile);
const COMMAND = new URL('./command.ts', import.meta.url).pathname;

test('hack/camera: help names every option, and a wrong one is said in one line', async () => {
  const { stdout } = await run(process.execPath, [COMMAND, '--help']);
  assert.match(stdout, /--video NAME/);
  await assert.rejects(run(process.execPath, [COMMAND, '--video', 'x']), (error: { code: number; stderr: string }) => {
    assert.equal(error.code, 2);
    return /^error: --video must be one of: h264, .*\n$/.test(error.stderr);
  });
});

test('hack/camera: ffmpeg plays it, badly as told, and Ctrl-C ends it', async (t) => {
  const camera = spawn(process.execPath, [
    COMMAND,
    '--port',
    '0',
    '--speed',
    '4',
    '--login',
    'a:b',
    '--double',
    '3',
    '--verbose',
  ]);
  t.after(() => camera.kill('SIGKILL'));
  let output = '';
  camera.stdout.on('data', (text: Buffer) => (output += text.toString()));
  while (!output.includes('\n')) await once(camera.stdout, 'data');
  const address = output.split('\n')[0] ?? '';
  // A browser, or a recorder that looks whether another one listens there.
  const stranger = connect({ host: '127.0.0.1', port: Number(new URL(address).port) });
  stranger.on('error', () => {});
  stranger.resume().write('GET / HTTP/1.1\r\n\r\n');
  await once(stranger, 'close');
  const url = address.replace('://', '://a:b@');
  await run('ffmpeg', ['-v', 'error', '-rtsp_transport', 'tcp', '-i', url, '-frames:v', '25', '-f', 'null', '-'], {
    timeout: PATIENCE_MS,
  });
  const ended = once(camera, 'exit');
  camera.kill('SIGINT');
  assert.deepEqual(await ended, [0, null]);
  assert.match(output, /1: PLAY rtsp:/);
});

test('hack/camera: with a memory it names its ONVIF services, and they say what it has', async (t) => {
  const camera = spawn(process.execPath, [COMMAND, '--port', '0', '--memory']);
  t.after(() => camera.kill('SIGKILL'));
  let output = '';
  camera.stdout.on('data', (text: Buffer) => (output += text.toString()));
  while (output.split('\n').length < 3) await once(camera.stdout, 'data');
  const [source = '', onvif = ''] = output.split('\n');
  const settings = { source, onvif, tls: { verify: false }, allowPlaintextLogin: false };
  const deps = { clock: systemClock, reach: anywhere(), pool: new SlabPool() };
  const { answer, message } = await lookForMemory(settings, deps, new AbortController().signal);
  assert.deepEqual([answer, message.includes('Profile G')], ['yes', true], message);
});
