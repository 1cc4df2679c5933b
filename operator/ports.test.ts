import assert from 'node:assert/strict';
import { test } from 'node:test';
import { portsOf } from './ports.ts';

test('an argument that is not a port is refused with the name of its option', () => {
  assert.deepEqual(portsOf('--api-server-port', ['443', '6443']), [443, 6443]);
  for (const text of ['abc', '0', '65536', '1e3', '-1', ' 80', '']) {
    assert.throws(() => portsOf('--database-port', ['5432', text]), {
      message: `--database-port ${text}: expected a port, from 1 to 65535`,
    });
  }
});
