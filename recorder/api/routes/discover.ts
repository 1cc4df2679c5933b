// `/api/cameras/discover`: searches the networks of this node for cameras. `/api/cameras/test/still`: a picture of one that is not
// configured yet.

import { z } from 'zod';
import { CameraFile } from '../../config/schema.ts';
import { hostOf } from '../../config/values.ts';
import { tell } from '../../http/audit.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import type { DeviceReport } from '../../onvif/discovery/describe.ts';
import { cameraEntries, type CameraEntry } from '../../onvif/discovery/entries.ts';
import { configOf, manifestOf, NO_STREAM } from '../../onvif/discovery/output.ts';
import type { ApiRoutes } from '../deps.ts';
import { imageBody, imageOf, imageResponses, sendImage } from '../image-answer.ts';

const SECONDS = 'expected a number of seconds from 1 to 10';
const Login = z.strictObject({
  user: z.string().min(1).max(100),
  password: z.string().max(1024),
});
const Search = z.strictObject({
  login: Login.optional().describe('The login for the cameras that are found. It is not stored.'),
  seconds: z.number(SECONDS).min(1, SECONDS).max(10, SECONDS).default(3).describe('How long to wait for answers.'),
});

const Found = z.object({
  id: z.string().describe('A suggested id.'),
  name: z.string().nullable(),
  maker: z.string().nullable(),
  model: z.string().nullable(),
  address: z.string(),
  source: z.string().describe('The address of its stream, without a login.'),
  preview: z.string().nullable().describe('The address of its second, smaller stream.'),
  snapshot: z.string().nullable(),
  onvif: z.string(),
  ptz: z.boolean(),
  video: z.object({ codec: z.string(), width: z.number().int(), height: z.number().int() }).nullable(),
  is_known: z.boolean().describe('Whether the node has a camera with this stream.'),
  config: z.string().describe('Its entry in a configuration file; the text PASSWORD stands for the password.'),
  manifest: z.string().describe('The same as resources of Kubernetes.'),
});
const Discovered = z
  .object({
    cameras: z.array(Found),
    left_out: z
      .array(z.object({ address: z.string(), model: z.string().nullable(), problem: z.string() }))
      .describe('Devices that answered but offer no stream, for example because the login is wrong.'),
    problems: z.array(z.string()).describe('Why some networks could not be searched.'),
  })
  .meta({ id: 'DiscoveredCameras', description: 'The devices that answered in the networks of the node.' });

const FOUND = {
  id: 'dome-1-10-0-0-9',
  name: 'Front gate',
  maker: 'Acme',
  model: 'Dome 1',
  address: '10.0.0.9',
  source: 'rtsp://10.0.0.9/stream1',
  preview: 'rtsp://10.0.0.9/stream2',
  snapshot: 'http://10.0.0.9/snapshot.jpg',
  onvif: 'http://10.0.0.9/onvif/device_service',
  ptz: true,
  video: { codec: 'H264', width: 1920, height: 1080 },
  is_known: false,
  config: 'cameras:\n  - id: dome-1-10-0-0-9\n    source: rtsp://admin:PASSWORD@10.0.0.9/stream1\n',
  manifest: 'apiVersion: kube-nvr.dev/v1alpha1\nkind: Camera\n',
};

const StillOf = CameraFile.pick({ source: true, snapshot: true }).required();

const refusals = {
  403: problemResponse('This needs the role admin.'),
};

/** In place of the password, which no answer contains. */
const PLACEHOLDER = 'PASSWORD';

export const discoverRoutes: ApiRoutes = async (app, { deps: { discoverer } }) => {
  let isSearching = false;

  app.post(
    '/api/cameras/discover',
    {
      config: {
        role: 'admin',
        audit: 'discover',
        examples: {
          body: { login: { user: 'admin', password: 'secret' } },
          200: { cameras: [FOUND], left_out: [], problems: [] },
        },
      },
      schema: {
        operationId: 'discoverCameras',
        summary: 'Search the networks of this node for cameras',
        description:
          'Asks for ONVIF devices (WS-Discovery) in every network of the node, and the devices for their streams, where cameraNetworks allows it. Nothing is stored. A container finds cameras only if it shares the network of its machine.',
        tags: ['cameras'],
        body: Search,
        response: { 200: Discovered, ...refusals, 409: problemResponse('Another search is running.') },
      },
    },
    async (request) => {
      if (isSearching) throw new ApiError(409, 'discovery-busy', 'another search is running');
      isSearching = true;
      const { login, seconds } = request.body;
      try {
        const credentials = login && { username: login.user, password: login.password };
        const { reports, problems } = await discoverer.search(seconds * 1000, credentials);
        tell(request, { found: reports.length });
        const entries = cameraEntries(reports);
        const known = await discoverer.known(entries.map(({ stream }) => stream.source));
        return {
          cameras: entries.map((entry) => shown(entry, login?.user, known.has(entry.stream.source))),
          left_out: reports.filter(({ streams }) => streams.length === 0).map(leftOut),
          problems: [...problems],
        };
      } finally {
        isSearching = false;
      }
    },
  );

  app.post(
    '/api/cameras/test/still',
    {
      config: {
        role: 'admin',
        audit: 'test-camera',
        examples: {
          body: { source: 'rtsp://admin:secret@10.0.0.9/stream1', snapshot: 'http://10.0.0.9/snapshot.jpg' },
        },
      },
      schema: {
        operationId: 'getStillOfNewCamera',
        summary: 'A still image of a camera before it is saved',
        description: 'Fetched from the address `snapshot`, with the login of `source` if both have the same host.',
        tags: ['cameras'],
        body: StillOf,
        response: {
          200: {
            description: 'The image.',
            content: imageBody('image/jpeg', 'image/png', 'image/gif', 'image/webp', 'image/avif'),
          },
          ...imageResponses,
          403: refusals[403],
          502: problemResponse('The camera answered with an error, or not with an image.'),
          504: problemResponse('The camera did not answer within 10 seconds.'),
        },
      },
    },
    async (request, reply) => {
      tell(request, { host: hostOf(request.body.snapshot) });
      return sendImage(request, reply, await imageOf(discoverer.stillOfNew(request.body)), 'no-store');
    },
  );

  function shown({ id, name, report, stream }: CameraEntry, user: string | undefined, isKnown: boolean) {
    const { device, information, movable } = report;
    const { video } = stream.profile;
    const login = user === undefined ? undefined : { username: user, password: PLACEHOLDER };
    return {
      id,
      name: name ?? null,
      maker: information?.manufacturer ?? null,
      model: modelOf(report),
      address: device.address,
      source: stream.source,
      preview: stream.preview ?? null,
      snapshot: stream.snapshot ?? null,
      onvif: device.url,
      ptz: movable,
      video: video ? { codec: video.codec, width: video.width, height: video.height } : null,
      is_known: isKnown,
      config: configOf([{ id, name, report, stream }], login).toString({ lineWidth: 0 }),
      manifest: manifestOf({ id, name, report, stream }, login),
    };
  }
};

const modelOf = ({ information, device }: DeviceReport): string | null => information?.model ?? device.hardware ?? null;

const leftOut = (report: DeviceReport) => ({
  address: report.device.address,
  model: modelOf(report),
  problem: report.problems.join('; ') || NO_STREAM,
});
