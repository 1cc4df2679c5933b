import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryLimit, type MemoryLimit } from './memory-limit.ts';

const GiB = 1024 ** 3;
const NO_LIMIT_OF_VERSION_1 = '9223372036854771712';

function limitOf(files: Record<string, string>): MemoryLimit {
  const read = (path: string): string => {
    const text = files[path];
    if (text === undefined) throw new Error(`ENOENT: ${path}`);
    return text;
  };
  return memoryLimit({ read, totalBytes: 16 * GiB });
}

test('without control groups, the memory of the machine', () => {
  assert.deepEqual(limitOf({}), { bytes: 16 * GiB, from: 'machine' });
});

test('control groups without a limit: the memory of the machine', () => {
  const limit = limitOf({
    '/proc/self/cgroup': '4:memory:/a\n0::/a\n',
    '/sys/fs/cgroup/memory/a/memory.limit_in_bytes': NO_LIMIT_OF_VERSION_1,
    '/sys/fs/cgroup/a/memory.max': 'max\n',
  });
  assert.deepEqual(limit, { bytes: 16 * GiB, from: 'machine' });
});

test('version 2: the least of the limits of its group and of all around it, hard or soft', () => {
  const files = {
    '/proc/self/cgroup': '0::/pod/container\n',
    '/sys/fs/cgroup/pod/container/memory.max': 'max\n',
    '/sys/fs/cgroup/pod/memory.max': `${2 * GiB}\n`,
  };
  assert.deepEqual(limitOf(files), { bytes: 2 * GiB, from: 'control-group' });
  const soft = { ...files, '/sys/fs/cgroup/pod/container/memory.high': `${GiB}\n` };
  assert.equal(limitOf(soft).bytes, GiB);
});

test('version 1 beside version 2: the limit of the group with the memory controller, and of those around it', () => {
  const files = {
    '/proc/self/cgroup': '12:cpu,cpuacct:/other\n4:memory:/pod/container\n0::/\n',
    '/sys/fs/cgroup/memory/pod/container/memory.limit_in_bytes': NO_LIMIT_OF_VERSION_1,
    '/sys/fs/cgroup/memory/pod/memory.limit_in_bytes': `${GiB}\n`,
  };
  assert.deepEqual(limitOf(files), { bytes: GiB, from: 'control-group' });
});

test('a container that sees the path of the host has its own group mounted as the root', () => {
  const version1 = {
    '/proc/self/cgroup': '4:memory:/kubepods/pod1/abc\n',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': `${GiB}\n`,
  };
  const version2 = { '/proc/self/cgroup': '0::/../../abc\n', '/sys/fs/cgroup/memory.max': `${GiB}\n` };
  assert.equal(limitOf(version1).bytes, GiB);
  assert.equal(limitOf(version2).bytes, GiB);
});

test('a limit above the memory of the machine does not count', () => {
  const files = { '/proc/self/cgroup': '0::/a\n', '/sys/fs/cgroup/a/memory.max': String(64 * GiB) };
  assert.deepEqual(limitOf(files), { bytes: 16 * GiB, from: 'machine' });
});
