// Every route of every listener: who may call it, what it tells about cameras, and a request that it answers. A test fails if a
// route is missing here, so its author has to decide who may call it.

import type { InjectOptions } from 'fastify';
import type { Role } from '../../recorder/config/schema.ts';

export interface RouteFacts {
  /** The required role; `anyone` may call it without a token. */
  readonly role: Role | 'anyone';
  /**
   * What a token for certain cameras may get. `all`: the route tells nothing about cameras. `nothing`: it concerns the whole
   * node. `one`: only if the camera in the request is in scope. `some`: the cameras that are in scope.
   */
  readonly cameras: 'all' | 'nothing' | 'one' | 'some';
  /** A right that a viewer may have besides. */
  readonly right?: 'export';
  /** `?access_token=` is accepted. */
  readonly query?: true;
  /** A link opens it. */
  readonly link?: true;
  /** The request is for a WebSocket. */
  readonly webSocket?: true;
  /** The status for an existing camera. */
  readonly status: number;
  /** Accepts any id of a camera; one that is out of scope is refused all the same. */
  readonly takesUnknown?: true;
  /** A request for a camera such as `gate`; ids of other objects contain that of the camera. */
  readonly request: (camera: string) => Pick<InjectOptions, 'payload'> & { readonly url: string };
}

const FROM = Date.UTC(2026, 0, 1, 12) / 1000;
const window = `from=${FROM}&to=${FROM + 20}`;
/** The path of a camera's recording that started with the archive. */
const pathOf = (camera: string): string =>
  `2026/01/01/${camera.slice(0, 1).toUpperCase()}${camera.slice(1)}_${camera}_20260101_120000000.mp4`;

const at = (url: string) => () => ({ url });
const post = (url: string, payload: object) => () => ({ url, payload });

export const API_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /api/session': { role: 'viewer', cameras: 'all', status: 200, request: at('/api/session') },
  // Without a password that is right, everybody gets 401.
  'POST /api/session': {
    role: 'anyone',
    cameras: 'all',
    status: 401,
    request: post('/api/session', { name: 'nobody', password: 'wrong' }),
  },
  'DELETE /api/session': { role: 'anyone', cameras: 'all', status: 204, request: at('/api/session') },
  'POST /api/links': {
    role: 'viewer',
    cameras: 'all',
    status: 201,
    request: post('/api/links', { path: '/api/archive/jobs/of-gate/download' }),
  },
  'GET /api/health/live': { role: 'anyone', cameras: 'all', status: 200, request: at('/api/health/live') },
  'GET /api/health/ready': { role: 'anyone', cameras: 'some', status: 200, request: at('/api/health/ready') },
  'GET /api/metrics': { role: 'viewer', cameras: 'all', status: 200, request: at('/api/metrics') },
  'GET /api/log': { role: 'admin', cameras: 'nothing', status: 200, request: at('/api/log') },
  'PUT /api/log': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: () => ({ url: '/api/log', payload: { level: 'info' } }),
  },
  'GET /api/audit': { role: 'admin', cameras: 'nothing', status: 200, request: at('/api/audit') },
  'GET /api/events': {
    role: 'viewer',
    cameras: 'some',
    query: true,
    status: 200,
    request: at('/api/events?seconds=0&last_event_id=0'),
  },
  'GET /api/accounts': { role: 'admin', cameras: 'nothing', status: 200, request: at('/api/accounts') },
  'GET /api/cameras': { role: 'viewer', cameras: 'some', status: 200, request: at('/api/cameras') },
  'GET /api/cameras/:id': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}` }),
  },
  'POST /api/cameras': {
    role: 'admin',
    cameras: 'nothing',
    status: 201,
    request: (camera) => ({ url: '/api/cameras', payload: { id: camera, source: 'rtsp://camera.example/' } }),
  },
  'POST /api/cameras/test': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/api/cameras/test', { source: 'rtsp://camera.example/' }),
  },
  'POST /api/cameras/discover': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/api/cameras/discover', {}),
  },
  'POST /api/cameras/test/still': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/api/cameras/test/still', {
      source: 'rtsp://camera.example/',
      snapshot: 'http://camera.example/still.jpg',
    }),
  },
  'PUT /api/cameras/:id': {
    role: 'admin',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}`, payload: { source: 'rtsp://camera.example/' } }),
  },
  'DELETE /api/cameras/:id': {
    role: 'admin',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}` }),
  },
  'GET /api/cameras/:id/settings': {
    role: 'admin',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}/settings` }),
  },
  'GET /api/cameras/:id/snapshot': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}/snapshot` }),
  },
  'GET /api/cameras/:id/thumbnail': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}/thumbnail` }),
  },
  'GET /api/cameras/:id/probe': {
    role: 'admin',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}/probe?seconds=1` }),
  },
  'GET /api/cameras/:id/capture': {
    role: 'admin',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/cameras/${camera}/capture?seconds=1` }),
  },
  'POST /cameras/start': {
    role: 'operator',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: '/cameras/start', payload: { id: camera } }),
  },
  'POST /cameras/stop': {
    role: 'operator',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: '/cameras/stop', payload: { id: camera } }),
  },
  'GET /api/archive/:camera_id/segments': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/archive/${camera}/segments?${window}` }),
  },
  'GET /api/archive/:camera_id/current': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/archive/${camera}/current` }),
  },
  'GET /api/archive/:camera_id/gaps': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/archive/${camera}/gaps?${window}` }),
  },
  'GET /api/archive/:camera_id/still': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/api/archive/${camera}/still?at=${FROM + 5}` }),
  },
  'GET /api/archive/timeline': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/archive/timeline?camera=${camera}&${window}` }),
  },
  'GET /api/archive/:camera_id/days': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/archive/${camera}/days?month=2026-01&tz=UTC` }),
  },
  'POST /api/archive/:camera_id/protect': {
    role: 'operator',
    cameras: 'one',
    status: 201,
    request: (camera) => ({ url: `/api/archive/${camera}/protect?${window}` }),
  },
  'GET /api/archive/:camera_id/protections': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/archive/${camera}/protections` }),
  },
  'GET /api/archive/protections': {
    role: 'viewer',
    cameras: 'some',
    status: 200,
    request: at('/api/archive/protections'),
  },
  'DELETE /api/archive/protections/:id': {
    role: 'operator',
    cameras: 'one',
    status: 204,
    request: (camera) => ({ url: `/api/archive/protections/of-${camera}` }),
  },
  'POST /api/archive/:camera_id/export': {
    role: 'operator',
    cameras: 'one',
    right: 'export',
    status: 202,
    request: (camera) => ({ url: `/api/archive/${camera}/export?${window}` }),
  },
  'POST /api/archive/:camera_id/timelapse': {
    role: 'operator',
    cameras: 'one',
    right: 'export',
    status: 202,
    request: (camera) => ({ url: `/api/archive/${camera}/timelapse?${window}&speed=2` }),
  },
  'POST /api/archive/:camera_id/assemble': {
    role: 'admin',
    cameras: 'one',
    takesUnknown: true,
    status: 202,
    request: (camera) => ({
      url: `/api/archive/${camera}/assemble`,
      payload: { kind: 'export', parts: [{ peer_addr: 'peer:9997', peer_job_id: 'e1', ordinal: 0 }] },
    }),
  },
  'POST /api/cases': {
    role: 'operator',
    cameras: 'one',
    right: 'export',
    status: 202,
    request: (camera) => ({ url: '/api/cases', payload: { cameras: [camera], from: FROM, to: FROM + 20 } }),
  },
  'GET /api/keys': { role: 'viewer', cameras: 'all', status: 200, request: at('/api/keys') },
  'GET /api/archive/jobs/:job_id/manifest': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/api/archive/jobs/of-${camera}/manifest` }),
  },
  'GET /api/archive/jobs/:job_id/signature': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/api/archive/jobs/of-${camera}/signature` }),
  },
  'GET /api/archive/jobs': { role: 'viewer', cameras: 'some', status: 200, request: at('/api/archive/jobs') },
  'GET /api/archive/jobs/:job_id': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/archive/jobs/of-${camera}` }),
  },
  'DELETE /api/archive/jobs/:job_id': {
    role: 'operator',
    cameras: 'one',
    status: 204,
    request: (camera) => ({ url: `/api/archive/jobs/of-${camera}` }),
  },
  'GET /api/archive/jobs/:job_id/download': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/api/archive/jobs/of-${camera}/download` }),
  },
  'POST /api/ptz/move': {
    role: 'operator',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: '/api/ptz/move', payload: { camera_id: camera, pan: 1, tilt: 0, zoom: 0 } }),
  },
  'POST /api/ptz/stop': {
    role: 'operator',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: '/api/ptz/stop', payload: { camera_id: camera } }),
  },
  'GET /api/ptz/presets': {
    role: 'operator',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/api/ptz/presets?camera_id=${camera}` }),
  },
  'POST /api/ptz/goto': {
    role: 'operator',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: '/api/ptz/goto', payload: { camera_id: camera, preset: '1' } }),
  },
  'GET /websocket/:camera_id': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    webSocket: true,
    status: 101,
    request: (camera) => ({ url: `/websocket/${camera}` }),
  },
  'GET /': { role: 'anyone', cameras: 'all', status: 200, request: at('/') },
  'GET /reference': { role: 'anyone', cameras: 'all', status: 200, request: at('/reference') },
  'GET /page/*': { role: 'anyone', cameras: 'all', status: 200, request: at('/page/player.js') },
  'GET /openapi.json': { role: 'anyone', cameras: 'all', status: 200, request: at('/openapi.json') },
};

/** Routes of the API in a cluster. */
export const CLUSTER_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /cluster/cameras': { role: 'viewer', cameras: 'some', status: 200, request: at('/cluster/cameras') },
  // Preflight requests from pages of the other nodes.
  'OPTIONS /*': { role: 'anyone', cameras: 'all', status: 204, request: at('/anything') },
  'GET /cluster/metrics': { role: 'viewer', cameras: 'nothing', status: 200, request: at('/cluster/metrics') },
  'POST /cluster/add-learner': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/cluster/add-learner', { node_id: 'rack-4' }),
  },
  'POST /cluster/change-membership': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/cluster/change-membership', { voters: ['rack-1'] }),
  },
  'POST /cluster/remove-node': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/cluster/remove-node', { node_id: 'rack-4' }),
  },
  'POST /cluster/leave': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/cluster/leave', {}),
  },
};

/** Routes of the API in a cluster of servers without Kubernetes. */
export const STORE_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /api/cluster/:kind': { role: 'admin', cameras: 'nothing', status: 200, request: at('/api/cluster/cameras') },
  'GET /api/cluster/:kind/:name': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: at('/api/cluster/cameras/gate'),
  },
  'PUT /api/cluster/:kind/:name': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/api/cluster/cameras/gate', { kind: 'Camera' }),
  },
  'DELETE /api/cluster/:kind/:name': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: at('/api/cluster/cameras/gate'),
  },
  'POST /api/cluster/tokens': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/api/cluster/tokens', { node_id: 'rack-4' }),
  },
};

export const PLAYBACK_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /footage/:camera_id': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    request: (camera) => ({ url: `/footage/${camera}?${window}` }),
  },
  'GET /hls/:camera_id/index.m3u8': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    status: 200,
    request: (camera) => ({ url: `/hls/${camera}/index.m3u8?${window}` }),
  },
  'GET /hls/:camera_id/variants.m3u8': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    status: 200,
    request: (camera) => ({ url: `/hls/${camera}/variants.m3u8?${window}` }),
  },
  'GET /hls/:camera_id/init/*': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    status: 200,
    request: (camera) => ({ url: `/hls/${camera}/init/${pathOf(camera)}` }),
  },
  'GET /hls/:camera_id/parts/:part/*': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    status: 200,
    request: (camera) => ({ url: `/hls/${camera}/parts/0/${pathOf(camera)}` }),
  },
  'GET /window/:file': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/window/${camera}.mp4?${window}` }),
  },
  'GET /*': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    request: (camera) => ({ url: `/${pathOf(camera)}` }),
  },
  'GET /openapi.json': { role: 'anyone', cameras: 'all', status: 200, request: at('/openapi.json') },
  // Preflight requests from pages, which have no token.
  'OPTIONS /*': { role: 'anyone', cameras: 'all', status: 204, request: at('/anything') },
};

/** The same under the API's own address. */
export const PLAYBACK_UNDER_API: Readonly<Record<string, RouteFacts>> = Object.fromEntries(
  Object.entries(PLAYBACK_ROUTES)
    .filter(([, { role }]) => role !== 'anyone')
    .map(([name, facts]): [string, RouteFacts] => {
      const request: RouteFacts['request'] = (camera) => {
        const { url, ...rest } = facts.request(camera);
        return { ...rest, url: `/playback${url}` };
      };
      return [name.replace(' ', ' /playback'), { ...facts, request }];
    }),
);

/** With `metrics.requireToken`. */
export const METRICS_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /metrics': { role: 'viewer', cameras: 'nothing', status: 200, request: at('/metrics') },
};
