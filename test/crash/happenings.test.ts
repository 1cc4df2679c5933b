// kill -9 while several sources report events: every event that was accepted is there, once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecorderProcess } from '../support/recorder-process.ts';
import { LONG } from '../support/variant.ts';
import { seeded } from '../support/random.ts';
import { workspace } from '../support/workspace.ts';

/** When the recorder is killed; of the seed that is printed. */
const random = seeded();

const ROUNDS = LONG ? 50 : 5;
const SOURCES = 4;
const CAMERAS = ['gate', 'yard'];

test(`events that were accepted are there once after ${ROUNDS} kills`, async (t) => {
  // Nobody answers there: events are kept whether or not a camera is recorded.
  const cameras = CAMERAS.map((id) => ({ id, source: 'rtsp://127.0.0.1:9/' }));
  let recorder = await RecorderProcess.start({ directory: workspace(t), config: { cameras } });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  const accepted = new Set<string>();
  const fromMs = Date.now() - 1_000;
  let count = 0;

  /** Reports one event after another until the recorder is gone. */
  async function report(source: number, accept: () => void): Promise<void> {
    for (;;) {
      const id = `${source}-${count++}`;
      const event = { specversion: '1.0', id, source: `source-${source}`, type: 'person' };
      const status = await fetch(`${recorder.url}/api/cameras/${CAMERAS[source % 2]}/events`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(event),
      }).then(
        (answer) => answer.status,
        () => undefined,
      );
      if (status === undefined) return;
      assert.equal(status, 200);
      accepted.add(id);
      accept();
    }
  }

  for (let round = 0; round < ROUNDS; round++) {
    let left = 1 + Math.floor(random() * 60);
    const kill = (): void => {
      if (--left === 0) recorder.child.signal('SIGKILL');
    };
    await Promise.all(Array.from({ length: SOURCES }, (_, source) => report(source, kill)));
    await recorder.child.exit();
    recorder = await recorder.restart();
  }

  const found: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const query = `from=${fromMs / 1000}&to=${Date.now() / 1000 + 60}&limit=100`;
    const { events, next } = (await recorder.get(
      `/api/events/search?camera=gate&camera=yard&${query}${cursor && `&cursor=${cursor}`}`,
    )) as { events: { id: string }[]; next: string | null };
    found.push(...events.map(({ id }) => id));
    cursor = next;
  }
  assert.equal(new Set(found).size, found.length, 'each once');
  assert.ok(accepted.size >= ROUNDS);
  assert.deepEqual(
    [...accepted].filter((id) => !found.includes(id)),
    [],
  );
});
