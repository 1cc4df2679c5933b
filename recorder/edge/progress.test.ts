import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Progress } from './progress.ts';

const MEGABYTE = 1024 * 1024;
const WINDOW = { fromMs: 1_000_000, untilMs: 1_060_000 };
const picture = (cameraMs: number) => ({
  cameraMs,
  randomAccess: true,
  endsSection: false,
  terminal: false,
  bytes: MEGABYTE,
});

test('a camera that sends only sound, without end, is told from one that makes progress', () => {
  const progress = new Progress(WINDOW, { hasOther: true, leadMs: 0 });
  progress.lead(picture(WINDOW.fromMs));
  const sounds = (): void => {
    for (let i = 0; i < 60; i++) assert.equal(progress.other({ cameraMs: WINDOW.fromMs + i, bytes: MEGABYTE }), true);
  };
  for (let i = 1; i < 5; i++) {
    sounds();
    progress.lead(picture(WINDOW.fromMs + i * 1_000));
  }
  sounds();
  assert.throws(sounds, { code: 'bad-answer' });
});
