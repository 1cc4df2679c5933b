import assert from 'node:assert/strict';
import { test } from 'node:test';

/** What the store asks for, and a stream of events; the console finds both as globals of the browser. */
const asked: string[] = [];
const streams: EventTarget[] = [];
class Stream extends EventTarget {
  constructor() {
    super();
    streams.push(this);
  }
  close(): void {}
}
const browser = {
  EventSource: Stream,
  window: { location: new URL('http://recorder/') },
  document: { hidden: false },
  fetch: async (address: string) => {
    asked.push(address);
    const gate = { camera_id: 'gate', kept_from_ms: 0, spans: [], gaps: [], protections: [], elsewhere: [] };
    return Response.json({ cameras: [gate] });
  },
};
for (const [name, value] of Object.entries(browser)) Object.defineProperty(globalThis, name, { value, writable: true });
const { watchEvents } = await import('../app/events.ts');
const { session } = await import('../app/session.ts');
const { followFilled, TimelineStore } = await import('./timeline-store.ts');

const tell = (type: string): void => {
  const data = JSON.stringify({ time: '2026-01-01T00:00:00Z', data: {} });
  for (const stream of streams) stream.dispatchEvent(Object.assign(new Event(type), { data }));
};

const loadedAgain = (store: InstanceType<typeof TimelineStore>, before: unknown): Promise<void> =>
  new Promise((resolve) => {
    const end = store.loaded.subscribe((loaded) => {
      if (loaded === undefined || loaded === before) return;
      resolve();
      queueMicrotask(() => end());
    });
  });

test('the past that is shown is read again when a gap of it was filled', async () => {
  session.value = { name: 'anna' } as typeof session.value & object;
  watchEvents();
  const store = new TimelineStore();
  const end = followFilled([store]);
  store.want({ cameras: ['gate'], range: { fromMs: 1_000_000, toMs: 2_000_000 }, resolutionMs: 1_000 });
  await loadedAgain(store, undefined);
  assert.equal(asked.length, 1);
  const first = store.loaded.value;
  tell('gap.closed');
  tell('gap.filled');
  await loadedAgain(store, first);
  assert.equal(asked.length, 2);
  end();
  store.stop();
  session.value = null;
});
