// The examples of docs/first-steps.md by a client that openapi-typescript made: RECORDER and TOKEN in, a summary as JSON out.

import createClient from 'openapi-fetch';
import type { components, paths } from './schema';

const baseUrl = process.env['RECORDER']!;
const headers = { authorization: `Bearer ${process.env['TOKEN']}` };
const client = createClient<paths>({ baseUrl, headers });

function got<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const ready = got(await client.GET('/api/health/ready'));
const camera: components['schemas']['Camera'] = got(
  await client.GET('/api/cameras/{id}', { params: { path: { id: 'gate' } } }),
);
const path = { camera_id: 'gate' };
const from: number = Date.now() / 1000 - 3600;
const list = got(await client.GET('/api/archive/{camera_id}/segments', { params: { path, query: { from } } }));
const segment: components['schemas']['Segment'] = list.archive[0]!;
const current = got(await client.GET('/api/archive/{camera_id}/current', { params: { path } }));
const metrics = got(await client.GET('/api/metrics'));
const unknown = await client.GET('/api/cameras/{id}', { params: { path: { id: 'nobody' } } });
const code: components['schemas']['ErrorCode'] = unknown.error!.code;
const playback = createClient<paths>({ baseUrl: camera.node.playback!, headers });
const file = await playback.GET('/{filename}', {
  params: { path: { filename: segment.filename } },
  parseAs: 'arrayBuffer',
});
const bytes = new Uint8Array(file.data as unknown as ArrayBuffer);

console.log(
  JSON.stringify({
    status: ready.status,
    camera: camera.name,
    width: camera.codecs.video?.width ?? 0,
    filename: segment.filename,
    start_ms: segment.start_ms,
    current: current.filename,
    node: metrics.node_name,
    code,
    box: new TextDecoder().decode(bytes.subarray(4, 8)),
  }),
);
