import assert from 'node:assert/strict';
import { test } from 'node:test';
import { movieName } from './movie-name.ts';

test('two cameras with one long name in any script are two files, whose names fit every file system', () => {
  const local = { site: '店'.repeat(100), timeZone: 'Asia/Kolkata', nameOf: () => '前门'.repeat(50) };
  const names = ['a', 'b'].map((end) =>
    movieName(end.padStart(63, 'x'), 0, { number: 50, codec: 'hvc1', speed: 120, local }),
  );
  assert.notEqual(names[0], names[1]);
  for (const name of names) {
    assert.ok(Buffer.byteLength(name) <= 255, name);
    assert.match(name, /^店{20} - [前门]{20} \(x{62}[ab]\) - 1970-01-01 05\.30\.00 \S+ - 50 - h265 - x120\.mp4$/);
  }
});
