// Every route of every listener: who may call it, what it tells about cameras, and a request that it answers. A test fails if a
// route is missing here, so its author has to decide who may call it.

import type { FastifyInstance, InjectOptions } from 'fastify';
import type { Role } from '../../recorder/config/schema.ts';
import type { OpenApiDocument } from '../../recorder/http/openapi.ts';

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
  /** The query of the request that `requestOf` makes. */
  readonly search?: string;
  /** Its own request for a camera such as `gate`; ids of other objects contain that of the camera. */
  readonly request?: (camera: string) => RouteRequest;
}

type RouteRequest = Pick<InjectOptions, 'payload'> & { readonly url: string };

/**
 * The request of a route for a camera: by default its own path, and the body of the example beside its schema, both with the id
 * of this camera.
 */
export function requestOf(app: FastifyInstance, name: string, facts: RouteFacts, camera: string): RouteRequest {
  if (facts.request) return facts.request(camera);
  const [method = '', route = ''] = name.split(' ');
  const path = route.replace(/:(?:camera_id|id)\b/, camera).replace(':job_id', `of-${camera}`);
  const url = facts.search === undefined ? path : `${path}?${facts.search}`;
  const body = exampleBody(app, method, route);
  if (!body) return { url };
  const ids = { id: camera, camera_id: camera, cameras: [camera] };
  const own = Object.entries(ids).filter(([field]) => field in body);
  return { url, payload: { ...body, ...Object.fromEntries(own) } };
}

function exampleBody(app: FastifyInstance, method: string, route: string): object | undefined {
  if (!app.hasPlugin('@fastify/swagger')) return undefined;
  const { paths = {} } = app.swagger() as OpenApiDocument;
  const operation = paths[route.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
  return operation?.requestBody?.content?.['application/json']?.example as object | undefined;
}

const FROM = Date.UTC(2026, 0, 1, 12) / 1000;
const window = `from=${FROM}&to=${FROM + 20}`;
/** The path of a camera's recording that started with the archive. */
const pathOf = (camera: string): string =>
  `2026/01/01/${camera.slice(0, 1).toUpperCase()}${camera.slice(1)}_${camera}_20260101_120000000.mp4`;

const at = (url: string) => () => ({ url });
const post = (url: string, payload: object) => () => ({ url, payload });

export const API_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /api/session': { role: 'viewer', cameras: 'all', status: 200 },
  // Without a password that is right, everybody gets 401.
  'POST /api/session': {
    role: 'anyone',
    cameras: 'all',
    status: 401,
    request: post('/api/session', { name: 'nobody', password: 'wrong' }),
  },
  'DELETE /api/session': { role: 'anyone', cameras: 'all', status: 204 },
  'GET /api/sessions': { role: 'viewer', cameras: 'all', status: 200 },
  // Callers with a token have no session.
  'DELETE /api/sessions/:id': {
    role: 'viewer',
    cameras: 'all',
    status: 404,
    request: at(`/api/sessions/${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}`),
  },
  'DELETE /api/sessions': {
    role: 'admin',
    cameras: 'nothing',
    status: 204,
    request: at('/api/sessions?kind=person&name=plant/anna'),
  },
  // The recorder of this test makes no users.
  'PUT /api/users/:name': {
    role: 'admin',
    cameras: 'nothing',
    status: 409,
    request: post('/api/users/guard', { role: 'viewer', password: 'correct horse' }),
  },
  'DELETE /api/users/:name': { role: 'admin', cameras: 'nothing', status: 409, request: at('/api/users/guard') },
  // Callers with a token have no password.
  'PUT /api/users/me/password': {
    role: 'viewer',
    cameras: 'all',
    status: 403,
    request: post('/api/users/me/password', { password: 'correct horse', new_password: 'battery staple' }),
  },
  'GET /api/sign-in': { role: 'anyone', cameras: 'all', status: 200 },
  // Without issuers, none has this name.
  'GET /api/sign-in/:issuer': { role: 'anyone', cameras: 'all', status: 404, request: at('/api/sign-in/plant') },
  'GET /api/sign-in/:issuer/callback': {
    role: 'anyone',
    cameras: 'all',
    status: 404,
    request: at('/api/sign-in/plant/callback'),
  },
  'POST /api/sign-in/:issuer/logout': {
    role: 'anyone',
    cameras: 'all',
    status: 404,
    request: post('/api/sign-in/plant/logout', { logout_token: 'x' }),
  },
  'POST /api/links': {
    role: 'viewer',
    cameras: 'all',
    status: 201,
    request: post('/api/links', { path: '/api/archive/jobs/of-gate/download' }),
  },
  'GET /api/health/live': { role: 'anyone', cameras: 'all', status: 200 },
  'GET /api/health/ready': { role: 'anyone', cameras: 'some', status: 200 },
  'GET /api/metrics': { role: 'viewer', cameras: 'all', status: 200 },
  'GET /api/log': { role: 'admin', cameras: 'nothing', status: 200 },
  'PUT /api/log': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'GET /api/audit': { role: 'admin', cameras: 'nothing', status: 200 },
  'GET /api/events': {
    role: 'viewer',
    cameras: 'some',
    query: true,
    status: 200,
    search: 'seconds=0&last_event_id=0',
  },
  'GET /api/alarms': { role: 'viewer', cameras: 'some', status: 200 },
  'POST /api/alarms/:id/acknowledge': { role: 'operator', cameras: 'one', status: 200 },
  'POST /api/alarms/log': { role: 'operator', cameras: 'all', status: 201 },
  'POST /api/mail/test': { role: 'admin', cameras: 'nothing', status: 200 },
  'GET /api/events/search': {
    role: 'viewer',
    cameras: 'some',
    status: 200,
    search: `camera=gate&camera=yard&${window}`,
  },
  'POST /api/cameras/:id/events': { role: 'reporter', cameras: 'one', status: 200 },
  'POST /api/cameras/:id/bookmarks': {
    role: 'operator',
    cameras: 'one',
    status: 201,
    request: (camera) => ({ url: `/api/cameras/${camera}/bookmarks`, payload: { name: 'A van', from: FROM } }),
  },
  'DELETE /api/cameras/:id/bookmarks/:bookmark': {
    role: 'operator',
    cameras: 'one',
    status: 204,
    request: (camera) => ({ url: `/api/cameras/${camera}/bookmarks/${FROM * 1000}-5b1f0c9e` }),
  },
  'GET /api/accounts': { role: 'admin', cameras: 'nothing', status: 200 },
  'GET /api/cameras': { role: 'viewer', cameras: 'some', status: 200 },
  'GET /api/cameras/:id': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
  },
  'POST /api/cameras': {
    role: 'admin',
    cameras: 'nothing',
    status: 201,
  },
  'POST /api/cameras/test': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'POST /api/cameras/discover': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'POST /api/cameras/test/still': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'PUT /api/cameras/:id': {
    role: 'admin',
    cameras: 'one',
    status: 200,
  },
  'DELETE /api/cameras/:id': {
    role: 'admin',
    cameras: 'one',
    status: 200,
  },
  'GET /api/cameras/:id/settings': {
    role: 'admin',
    cameras: 'one',
    status: 200,
  },
  'GET /api/cameras/:id/snapshot': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
  },
  'GET /api/cameras/:id/thumbnail': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
  },
  'GET /api/cameras/:id/probe': {
    role: 'admin',
    cameras: 'one',
    status: 200,
    search: 'seconds=1',
  },
  'GET /api/cameras/:id/activity': { role: 'viewer', cameras: 'one', status: 200, search: window },
  'GET /api/cameras/:id/capture': {
    role: 'admin',
    cameras: 'one',
    status: 200,
    search: 'seconds=1',
  },
  'POST /cameras/start': {
    role: 'operator',
    cameras: 'one',
    status: 200,
  },
  'POST /cameras/stop': {
    role: 'operator',
    cameras: 'one',
    status: 200,
  },
  'POST /api/cameras/:id/try-login': {
    role: 'operator',
    cameras: 'one',
    status: 200,
  },
  'GET /api/archive/:camera_id/segments': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    search: window,
  },
  'GET /api/archive/:camera_id/current': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
  },
  'GET /api/archive/:camera_id/gaps': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    search: window,
  },
  'GET /api/archive/:camera_id/still': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
    search: `at=${FROM + 5}`,
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
    search: 'month=2026-01&tz=UTC',
  },
  'GET /api/reports/:month': {
    role: 'viewer',
    cameras: 'some',
    status: 200,
    request: () => ({ url: '/api/reports/2026-01?tz=UTC' }),
  },
  'POST /api/archive/:camera_id/protect': {
    role: 'operator',
    cameras: 'one',
    status: 201,
    search: window,
  },
  'GET /api/archive/:camera_id/protections': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
  },
  'GET /api/archive/protections': {
    role: 'viewer',
    cameras: 'some',
    status: 200,
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
    search: window,
  },
  'POST /api/archive/:camera_id/timelapse': {
    role: 'operator',
    cameras: 'one',
    right: 'export',
    status: 202,
    search: `${window}&speed=2`,
  },
  'POST /api/archive/:camera_id/assemble': {
    role: 'admin',
    cameras: 'one',
    takesUnknown: true,
    status: 202,
  },
  'POST /api/cases': {
    role: 'operator',
    cameras: 'one',
    right: 'export',
    status: 202,
  },
  'GET /api/keys': { role: 'viewer', cameras: 'all', status: 200 },
  'GET /api/archive/jobs/:job_id/manifest': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
  },
  'GET /api/archive/jobs/:job_id/signature': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
  },
  'GET /api/archive/jobs': { role: 'viewer', cameras: 'some', status: 200 },
  'GET /api/archive/jobs/:job_id': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
  },
  'DELETE /api/archive/jobs/:job_id': {
    role: 'operator',
    cameras: 'one',
    status: 204,
  },
  'GET /api/archive/jobs/:job_id/download': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    link: true,
    status: 200,
  },
  'POST /api/ptz/move': {
    role: 'operator',
    cameras: 'one',
    status: 200,
  },
  'POST /api/ptz/stop': {
    role: 'operator',
    cameras: 'one',
    status: 200,
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
  },
  'GET /websocket/:camera_id': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    webSocket: true,
    status: 101,
  },
  'GET /': { role: 'anyone', cameras: 'all', status: 200 },
  'GET /reference': { role: 'anyone', cameras: 'all', status: 200 },
  'GET /page/*': { role: 'anyone', cameras: 'all', status: 200, request: at('/page/player.js') },
  'GET /openapi.json': { role: 'anyone', cameras: 'all', status: 200 },
};

/** Routes of the API in a cluster. */
export const CLUSTER_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /cluster/cameras': { role: 'viewer', cameras: 'some', status: 200 },
  // Preflight requests from pages of the other nodes.
  'OPTIONS /*': { role: 'anyone', cameras: 'all', status: 204, request: at('/anything') },
  'GET /cluster/metrics': { role: 'viewer', cameras: 'nothing', status: 200 },
  'POST /cluster/add-learner': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'POST /cluster/change-membership': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'POST /cluster/remove-node': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'POST /cluster/leave': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
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
  'PATCH /api/cluster/:kind/:name': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
    request: post('/api/cluster/cameras/gate', { spec: {} }),
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
  },
  'POST /api/cluster/keys': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
  'POST /api/cluster/expulsion': {
    role: 'admin',
    cameras: 'nothing',
    status: 202,
  },
  'GET /api/cluster/expulsion': {
    role: 'admin',
    cameras: 'nothing',
    status: 200,
  },
};

export const PLAYBACK_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /footage/:camera_id': {
    role: 'viewer',
    cameras: 'one',
    status: 200,
    search: window,
  },
  'GET /hls/:camera_id/index.m3u8': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    status: 200,
    search: window,
  },
  'GET /hls/:camera_id/variants.m3u8': {
    role: 'viewer',
    cameras: 'one',
    query: true,
    status: 200,
    search: window,
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
  'GET /openapi.json': { role: 'anyone', cameras: 'all', status: 200 },
  // Preflight requests from pages, which have no token.
  'OPTIONS /*': { role: 'anyone', cameras: 'all', status: 204, request: at('/anything') },
};

/** The same under the API's own address. */
export const PLAYBACK_UNDER_API: Readonly<Record<string, RouteFacts>> = Object.fromEntries(
  Object.entries(PLAYBACK_ROUTES)
    .filter(([, { role }]) => role !== 'anyone')
    .map(([name, facts]): [string, RouteFacts] => {
      const under = name.replace(' ', ' /playback');
      const { request } = facts;
      if (!request) return [under, facts];
      return [under, { ...facts, request: (camera) => ({ url: `/playback${request(camera).url}` }) }];
    }),
);

/** With `metrics.requireToken`. */
export const METRICS_ROUTES: Readonly<Record<string, RouteFacts>> = {
  'GET /metrics': { role: 'viewer', cameras: 'nothing', status: 200 },
};
