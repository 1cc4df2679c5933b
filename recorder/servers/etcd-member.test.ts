import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import type { EtcdClient } from '../../base/etcd/client.ts';
import { silentLog } from '../../base/log.ts';
import { workspace } from '../../test/support/workspace.ts';
import { EtcdMember } from './etcd-member.ts';

/** A member whose data was counted, and whose witness says another count. Its program says its version, and ends. */
function member(t: TestContext, { counted, witnessed }: { readonly counted: string; readonly witnessed: string }) {
  const outer = workspace(t);
  const [directory, witnessFile, program] = [join(outer, 'data'), join(outer, 'witness'), join(outer, 'etcd')];
  mkdirSync(join(directory, 'member'), { recursive: true });
  writeFileSync(join(directory, 'count'), counted);
  writeFileSync(witnessFile, witnessed);
  writeFileSync(program, '#!/bin/sh\n[ "$1" = --version ] && echo "etcd Version: 3.5.1"\n');
  chmodSync(program, 0o755);
  const own = { status: () => Promise.reject(new Error('nobody answers')) } as unknown as EtcdClient;
  const [peerUrl, clientUrl] = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
  return new EtcdMember({
    directory,
    witnessFile,
    name: 'rack-1',
    peerUrl,
    clientUrl,
    own,
    program,
    clock: systemClock,
    log: silentLog,
  });
}

test('data that is older than its witness is from a backup: the member is not started', async (t) => {
  await assert.rejects(member(t, { counted: '4', witnessed: '5' }).start(), { code: 'STALE_DATA' });
});

test('data that is as old as its witness, or ahead of it by a crash, is its own', async (t) => {
  for (const counted of ['5', '6']) {
    await assert.rejects(member(t, { counted, witnessed: '5' }).start(), { code: 'NOT_STARTED' });
  }
});
