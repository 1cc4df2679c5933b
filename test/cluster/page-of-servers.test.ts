// The page docs/cluster-of-servers.md, followed word for word on three servers: its commands are read from it. At the end one address
// and one login show all cameras.

import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCamera } from '../camera/camera.ts';
import { until } from '../support/until.ts';
import { PlainServers, plainServersMissing, type ClusterMetrics, type PlainServer } from './plain-servers.ts';
import { assertVotesAreTold } from './votes.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/cluster-of-servers.md'), 'utf8');

/** The blocks of a section: lines that are indented as code, and what is fenced as YAML. */
function blocksOf(section: string): { readonly commands: readonly (readonly string[])[]; readonly yaml: string } {
  const text = PAGE.split(`\n## ${section}\n`)[1]?.split('\n## ')[0] ?? '';
  const commands = [...text.matchAll(/(?:^(?: {4}| {6})(?:recorder|systemctl) .*\n)+/gm)].map(([block]) =>
    block
      .trim()
      .split('\n')
      .map((line) => line.trim()),
  );
  return { commands, yaml: /^```yaml\n([^]*?)^```$/m.exec(text)?.[1] ?? '' };
}

test(
  'the page of a cluster of servers, followed word for word, ends with one address, one login, all cameras',
  {
    skip: plainServersMissing(),
  },
  async (t) => {
    await using servers = await PlainServers.make();
    const source = await startCamera({ pace: 'realtime', host: servers.network.addresses.cameras });
    t.after(() => source.close());
    for (const name of ['rack-1', 'rack-2', 'rack-3']) await servers.add(name);
    const [first, second, third] = servers.all as [PlainServer, PlainServer, PlainServer];

    let said = '';
    /** Runs what the page says on a server. */
    const follow = async (server: PlainServer, commands: readonly string[]): Promise<void> => {
      for (const line of commands) {
        if (line === 'systemctl enable --now recorder') {
          await server.start();
          continue;
        }
        const [program, ...words] = line
          .replaceAll(/192\.0\.2\.([123])\b/g, (_, number) => servers.all[Number(number) - 1]?.address ?? '')
          .replace('nvrjoin.…', /nvrjoin\.\S+/.exec(said)?.[0] ?? 'the token that was printed')
          .split(' ');
        assert.equal(program, 'recorder', line);
        // No command needs a file of the API.
        rmSync(join(String(server.config['workDir']), 'admin.token'), { force: true });
        said = await server.run(...words.map((word) => (word === 'gate.yaml' ? manifest : word)));
      }
    };

    const {
      commands: [create, join_, ...more],
    } = blocksOf('Create the cluster');
    assert.ok(create && join_ && more.length === 0);
    await follow(first, create);
    await follow(second, join_);
    // The page: the same on rack-3, with a token and an address of its own.
    await follow(first, [(create.at(-1) ?? '').replace('rack-2', 'rack-3')]);
    await follow(
      third,
      join_.map((line) => line.replace('192.0.2.2', '192.0.2.3')),
    );

    const [link, ...others] = blocksOf('Users and tokens').commands;
    assert.ok(link && others.length === 0);
    await follow(second, link);
    const [, code = ''] = /[#?&](?:code|admin)=([^&\s]+)/.exec(said) ?? [];
    const made = await fetch(`${second.url}/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'anna', password: 'correct horse battery', code }),
    });
    assert.equal(made.status, 200, await made.text());
    const cookie = String(made.headers.get('set-cookie')).split(';', 1)[0] ?? '';
    /** At the one address, with the one login. A redirect to another server is followed with this login, too. */
    const ask = (url: string): Promise<Response> =>
      fetch(new URL(url, third.url), { headers: { cookie }, redirect: 'manual' });

    const { commands, yaml } = blocksOf('Cameras');
    const [apply, remove] = commands;
    assert.ok(apply && remove);
    const manifest = join(servers.directory, 'gate.yaml');
    const ofPage = yaml.replace('rtsp://192.0.2.20:554/stream1', source.url);
    assert.ok(ofPage.includes(source.url), yaml);
    writeFileSync(manifest, ofPage);
    await follow(second, apply);
    assert.match(said, /gate/);
    for (const { name } of servers.all) {
      writeFileSync(
        manifest,
        ofPage.replace('gate', `at-${name}`).replace('{ source', `{ placement: { preferredNode: ${name} }, source`),
      );
      await follow(third, apply);
    }
    const wanted = ['at-rack-1', 'at-rack-2', 'at-rack-3', 'gate'];
    await until('all are recorded, and listed', async () => {
      const { cameras } = (await (await ask('/cluster/cameras')).json()) as {
        cameras: readonly { id: string; node_id: string | null; state: string }[];
      };
      const nodes = new Set(cameras.map(({ node_id }) => node_id));
      const recorded = cameras.filter(({ state }) => state === 'recording').map(({ id }) => id);
      return nodes.size === 3 && recorded.sort().join() === wanted.join();
    });
    for (const id of wanted) {
      await until(`${id} is shown`, async () => {
        const answer = await ask(`/api/archive/${id}/current`);
        const { status } = answer.status === 307 ? await ask(answer.headers.get('location') ?? '') : answer;
        return status === 200;
      });
    }

    writeFileSync(manifest, ofPage);
    await follow(first, remove);
    await until('it is gone', async () => !(await (await ask('/cluster/cameras')).text()).includes('"gate"'));
    const asked = async (server: PlainServer): Promise<ClusterMetrics> =>
      (await (await ask(`${server.url}/cluster/metrics`)).json()) as ClusterMetrics;
    await assertVotesAreTold(servers.all.map((server) => ({ server, ask: () => asked(server) })));
  },
);
