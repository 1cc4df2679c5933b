import { test } from 'node:test';
import assert from 'node:assert/strict';
import { serviceManager } from './service-manager.ts';

test('systemd is told that the recorder is ready, that it is alive as often as it asks, and that it stops', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const sent: string[] = [];
  const env = { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '60000000', WATCHDOG_PID: String(process.pid) };
  const manager = serviceManager(env, (message) => sent.push(message));
  t.mock.timers.tick(60_000);
  assert.deepEqual(sent, []);
  manager.ready();
  t.mock.timers.tick(120_000);
  manager.stopping();
  const again = 'READY=1\nWATCHDOG=1';
  assert.deepEqual(sent, ['READY=1', again, again, again, 'WATCHDOG=1', 'STOPPING=1']);
});

test('nothing is sent without systemd, and no sign of life for a watchdog that watches another process', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const sent: string[] = [];
  const send = (message: string): void => void sent.push(message);
  serviceManager({ WATCHDOG_USEC: '1000000' }, send).ready();
  serviceManager({ NOTIFY_SOCKET: '@bus', WATCHDOG_USEC: '1000000', WATCHDOG_PID: '1' }, send).ready();
  t.mock.timers.tick(60_000);
  assert.deepEqual(sent, ['READY=1']);
});
