// A recorder process is asked for the recording in progress every 10 ms, while files change and cameras come back.

import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { GstreamerCameras, gstreamerMissing, type GstreamerCamera } from '../support/gstreamer-cameras.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { workspace } from '../support/workspace.ts';

const CHANGES = LONG ? 100 : 8;
const POLL_MS = 10;

interface Segment {
  readonly filename: string;
  readonly is_open: boolean;
  readonly size: number;
  readonly mtime: number;
}

const CAMERAS: readonly GstreamerCamera[] = [
  { name: 'gate', video: 'h264', audio: 'aac', gop: 25 },
  { name: 'yard', video: 'h264', audio: 'none', gop: 25 },
  { name: 'hall', video: 'h264', audio: 'none', gop: 25 },
];

/** A camera records from its first pictures on the disk on. */
async function untilWritten(recorder: RecorderProcess, id: string): Promise<void> {
  await until(`pictures of ${id} are on the disk`, async () => {
    const { archive } = (await recorder.get(`/api/archive/${id}/segments`)) as { archive: Segment[] };
    return archive.length > 0;
  });
}

/** Polls one after the other until `enough`. */
async function poll(look: () => Promise<void>, enough: () => boolean): Promise<number> {
  let polls = 0;
  for (; !enough(); polls++) {
    await look();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return polls;
}

describe('the recording in progress', { skip: gstreamerMissing() }, () => {
  test(`over ${CHANGES} changes of the file it is always there, and the list has it open; format mp4 is only listed`, async (t) => {
    await using cameras = await GstreamerCameras.start(CAMERAS);
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        cameras: [
          { id: 'gate', source: cameras.url('gate') },
          { id: 'yard', source: cameras.url('yard') },
          { id: 'hall', source: cameras.url('hall'), record: { format: 'mp4' } },
        ],
        archive: { segmentDuration: '1s' },
      },
    });
    for (const { name } of CAMERAS) await untilWritten(recorder, name);
    const seen = new Map(CAMERAS.map(({ name }) => [name, new Set<string>()]));
    const enough = (): boolean => [...seen.values()].every(({ size }) => size > CHANGES);
    const openOf = async (id: string): Promise<Segment[]> => {
      const { archive } = (await recorder.get(`/api/archive/${id}/segments`)) as { archive: Segment[] };
      const open = archive.filter(({ is_open }) => is_open);
      assert.ok(open.length > 0, `${id}: none of ${archive.length} segments is open`);
      assert.ok(archive.at(-1)?.is_open, `${id}: the newest is open`);
      for (const { filename } of open) seen.get(id)?.add(filename);
      return open;
    };
    const polls = await Promise.all(
      CAMERAS.map(({ name }) =>
        poll(async () => {
          if (name === 'hall') {
            assert.equal((await recorder.fetch('/api/archive/hall/current')).status, 404);
          } else {
            const answer = await recorder.fetch(`/api/archive/${name}/current`);
            assert.equal(answer.status, 200, `${name}: ${await answer.clone().text()}`);
            const { filename, size } = (await answer.json()) as { filename: string; size: number };
            assert.ok(size > 0 && statSync(join(recorder.recordPath, filename)).size > 0);
            seen.get(name)?.add(filename);
          }
          for (const { filename, mtime } of await openOf(name)) {
            const written = statSync(join(recorder.recordPath, filename)).mtimeMs / 1000;
            assert.ok(written >= mtime - 1, `${filename}: ${mtime} is not later than ${written}`);
          }
        }, enough),
      ),
    );
    t.diagnostic(`${polls.reduce((sum, count) => sum + count, 0)} polls`);
  });

  test('a camera that is lost has none, and has it again with the first pictures; a listed open segment is never empty', async (t) => {
    const [gate] = CAMERAS as [GstreamerCamera];
    await using first = await GstreamerCameras.start([gate]);
    const source = first.url('gate');
    const port = first.port('gate');
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: { cameras: [{ id: 'gate', source }], archive: { segmentDuration: '1s' } },
    });
    await untilWritten(recorder, 'gate');
    const status = async (): Promise<number> => (await recorder.fetch('/api/archive/gate/current')).status;
    assert.equal(await status(), 200);
    await first.stop();
    await until('the camera is known to be lost', async () => (await status()) === 404);
    const { archive } = (await recorder.get('/api/archive/gate/segments')) as { archive: Segment[] };
    await until('its last file is complete', async () => {
      const list = (await recorder.get('/api/archive/gate/segments')) as { archive: Segment[] };
      return list.archive.every(({ is_open }) => !is_open);
    });
    await using _again = await GstreamerCameras.start([{ ...gate, port }]);
    await until('it is recorded again', async () => (await status()) === 200);
    const begun = (await recorder.get('/api/archive/gate/segments')) as { archive: Segment[] };
    assert.ok(begun.archive.length > archive.length && begun.archive.at(-1)?.is_open);
    let changes = 0;
    let last = '';
    await poll(
      async () => {
        const answer = await recorder.fetch('/api/archive/gate/current');
        assert.equal(answer.status, 200);
        const { filename } = (await answer.json()) as { filename: string };
        if (filename !== last) changes++;
        last = filename;
      },
      () => changes > 3,
    );
  });
});
