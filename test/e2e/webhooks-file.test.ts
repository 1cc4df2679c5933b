// Webhooks in a file of their own, as a Secret is mounted into a pod: they come and go while the recorder runs.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { newWebhookSecret } from '../../recorder/events/signature.ts';
import { EventReader } from '../support/event-reader.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

/** Of each event that it has taken the id. */
async function receiver(t: TestContext): Promise<{ readonly url: string; readonly ids: string[] }> {
  const ids: string[] = [];
  const server = createServer((request, response) => {
    ids.push(String(request.headers['webhook-id']));
    request.resume().on('end', () => response.end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ids };
}

test('webhooks of a Secret that is made later are called; another version of it adds and removes some, a broken one does not', async (t) => {
  const directory = workspace(t);
  const mounted = join(directory, 'secret');
  mkdirSync(mounted);
  const webhooksFile = join(mounted, 'webhooks.yaml');
  let version = 0;
  /** As a kubelet does: a new directory, to which a link is turned. */
  const mount = (text: string): void => {
    version++;
    mkdirSync(join(mounted, `..${version}`));
    writeFileSync(join(mounted, `..${version}`, 'webhooks.yaml'), text);
    symlinkSync(`..${version}`, join(mounted, '..data_tmp'));
    renameSync(join(mounted, '..data_tmp'), join(mounted, '..data'));
    if (version === 1) symlinkSync('..data/webhooks.yaml', webhooksFile);
  };
  const secret = newWebhookSecret();
  const listOf = (...receivers: readonly { readonly url: string }[]): string =>
    JSON.stringify(receivers.map(({ url }) => ({ url, secret })));
  const [kept, gone, added] = [await receiver(t), await receiver(t), await receiver(t)];
  const config = { webhooksFile, cameras: [{ id: 'gate', source: 'rtsp://127.0.0.1:9/' }] };
  await using recorder = await RecorderProcess.start({ directory, config });
  const { child } = recorder;
  assert.match(child.output, /there are no webhooks: the file is missing or empty/);

  let isStopped = false;
  /** Two events at least: `camera.state`, with another state each. */
  const happen = async (): Promise<void> => {
    for (let i = 0; i < 2; i++) {
      isStopped = !isStopped;
      const answer = await fetch(`${recorder.url}/cameras/${isStopped ? 'stop' : 'start'}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'gate' }),
      });
      assert.equal(answer.status, 200);
    }
  };
  /** Of all that the journal has. */
  const ids = async (): Promise<readonly string[]> => {
    const all = await EventReader.open(`${recorder.url}/api/events?seconds=0&last_event_id=0`);
    await all.ended;
    return all.events.map(({ id }) => id);
  };
  const untilAll = (...receivers: readonly { readonly ids: readonly string[] }[]): Promise<boolean> =>
    until('they have all', async () => {
      const last = (await ids()).at(-1);
      return receivers.every((one) => one.ids.at(-1) === last);
    });

  mount(listOf(kept, gone));
  await until('both are open', () => child.output.includes('the webhooks were replaced'));
  await happen();
  await untilAll(kept, gone);
  await until('the recorder has the answers', async () =>
    /webhook_behind_seconds\{webhook="2"\} 0$/m.test(await (await fetch(recorder.metricsUrl)).text()),
  );

  mount(listOf(kept, added));
  await until('one has gone', () => child.output.includes(`"removed":["${new URL(gone.url).host}"]`));
  const before = gone.ids.length;
  await happen();
  await untilAll(kept, added);
  assert.equal(gone.ids.length, before);

  mount(`[{url: '${gone.url}', secret: plain-sesame}]`);
  await until('it is refused', () => child.output.includes(' webhooks[0].secret: expected whsec_'));
  assert.ok(child.output.includes(`${webhooksFile}:1:`) && !child.output.includes('plain-sesame'));
  await happen();
  await untilAll(kept, added);
  assert.doesNotMatch(child.output, /need a restart/);
  const taken = [[...kept.ids], [...added.ids]];
  const all = await ids();
  for (const list of taken) {
    const from = all.indexOf(list[0] ?? '');
    assert.deepEqual(list, all.slice(from, from + list.length), 'each event once, in order');
  }
});
