import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { errorCode } from '../../../base/error.ts';
import { systemError, temporaryDirectory, TestFileSystem } from '../test-support.ts';
import { roomMaking, type RoomMaker } from './room.ts';

/** So much old footage, each piece of which makes room for one try. */
class Room implements RoomMaker {
  removals = 0;
  asked = 0;
  written = 0;
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  async makeRoom(removals: number): Promise<boolean> {
    this.asked++;
    if (this.removals > removals) return true;
    if (this.left === 0) return false;
    this.left--;
    this.removals++;
    return true;
  }

  wrote(bytes: number): void {
    this.written += bytes;
  }
}

function fullFor(fs: TestFileSystem, refusals: number, code = 'ENOSPC'): void {
  let left = refusals;
  fs.before = ({ name }) => {
    if ((name === 'write' || name === 'create' || name === 'makeDirectory') && left-- > 0) throw systemError(code);
  };
}

for (const code of ['ENOSPC', 'EDQUOT']) {
  test(`${code}: a write waits until there is room, and leaves the same bytes as on an empty disk`, async (t) => {
    const root = temporaryDirectory(t);
    const inner = new TestFileSystem(root);
    const room = new Room(10);
    const fs = roomMaking(inner, () => room);
    fullFor(inner, 3, code);
    const file = await fs.create(join(root, 'a'));
    fullFor(inner, 4, code);
    assert.equal(await file.write([Buffer.from('one '), Buffer.from('two')], 0), 7);
    await file.close();
    assert.equal(readFileSync(join(root, 'a'), 'utf8'), 'one two');
    assert.equal(room.left, 3);
    assert.equal(room.written, 7);
  });
}

test('with nothing left to remove the error is the caller\u2019s', async (t) => {
  const root = temporaryDirectory(t);
  const inner = new TestFileSystem(root);
  const room = new Room(2);
  const fs = roomMaking(inner, () => room);
  fullFor(inner, 5);
  await assert.rejects(fs.makeDirectory(join(root, 'day')), (err) => errorCode(err) === 'ENOSPC');
  assert.equal(room.asked, 3);
});

test('what another write has removed meanwhile counts: two writers do not remove twice as much', async (t) => {
  const root = temporaryDirectory(t);
  const inner = new TestFileSystem(root);
  const room = new Room(10);
  const fs = roomMaking(inner, () => room);
  const files = await Promise.all(['a', 'b', 'c'].map((name) => fs.create(join(root, name))));
  fullFor(inner, 3);
  await Promise.all(files.map((file) => file.write([Buffer.from('x')], 0)));
  await Promise.all(files.map((file) => file.close()));
  assert.equal(room.asked, 3);
  assert.equal(room.removals, 1);
});

test('other errors are not answered with room', async (t) => {
  const root = temporaryDirectory(t);
  const inner = new TestFileSystem(root);
  const room = new Room(10);
  fullFor(inner, 1, 'EIO');
  await assert.rejects(roomMaking(inner, () => room).create(join(root, 'a')), (err) => errorCode(err) === 'EIO');
  assert.equal(room.asked, 0);
});
