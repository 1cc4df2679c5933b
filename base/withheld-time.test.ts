import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withheldTime } from './withheld-time.ts';

const of = (files: Readonly<Record<string, string>>) =>
  withheldTime((path) => {
    const text = files[path];
    if (text === undefined) throw new Error(`ENOENT: ${path}`);
    return text;
  });

const STAT = 'cpu  4705268 1356644 1573213 2923327 16061 0 55150 7696 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n';

test('time that the hypervisor took is that of all processors', () => {
  assert.deepEqual(of({ '/proc/stat': STAT }), { stolenMs: 76_960, throttledMs: 0 });
});

test('a container knows how long its own group was throttled, in either version of control groups', () => {
  const two = {
    '/proc/self/cgroup': '0::/kubepods/pod1/recorder\n',
    '/sys/fs/cgroup/cpu.stat': 'usage_usec 9\nnr_periods 7\nnr_throttled 3\nthrottled_usec 2500000\n',
  };
  assert.equal(of(two).throttledMs, 2_500);
  const one = {
    '/proc/self/cgroup': '9:name=systemd:/\n4:cpu,cpuacct:/docker/1\n',
    '/sys/fs/cgroup/cpu/docker/1/cpu.stat': 'nr_periods 7\nnr_throttled 3\nthrottled_time 1500000000\n',
  };
  assert.equal(of(one).throttledMs, 1_500);
});

test('of groups within groups it is the innermost that was throttled', () => {
  const files = {
    '/proc/self/cgroup': '0::/slice/recorder\n',
    '/sys/fs/cgroup/slice/recorder/cpu.stat': 'throttled_usec 0\n',
    '/sys/fs/cgroup/slice/cpu.stat': 'throttled_usec 4000\n',
    '/sys/fs/cgroup/cpu.stat': 'usage_usec 9\n',
  };
  assert.equal(of(files).throttledMs, 4);
});

test('a system without these files withholds nothing', () => {
  assert.deepEqual(of({}), { stolenMs: 0, throttledMs: 0 });
  const { stolenMs, throttledMs } = withheldTime();
  assert.ok(stolenMs >= 0 && throttledMs >= 0);
});
