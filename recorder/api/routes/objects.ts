// `/api/cluster/…`: the objects of a cluster of servers as manifests, join tokens, the key of Secrets, and what is taken back from a server.
// Used by `recorder apply`, `recorder get`, `recorder delete` and `recorder cluster`.

import { z } from 'zod';
import { ApiError as StoreError } from '../../../base/kubernetes/api-error.ts';
import { EXPULSION_STEPS, ExpulsionError, type ExpulsionState } from '../../certificates/expulsion.ts';
import { IssueError } from '../../certificates/issuer.ts';
import { RotationError } from '../../certificates/key-rotation.ts';
import { ManifestError, OBJECT_KINDS } from '../../cluster/objects.ts';
import { tell } from '../../http/audit.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { flag } from '../../http/query.ts';
import type { ApiRoutes } from '../deps.ts';
import { Done } from '../done.ts';
import { TIME } from '../examples.ts';
import { NodeID } from '../node-id.ts';
import { isoTime } from '../times.ts';

/** Certificates of a camera's authority may have 64 KiB. */
const MANIFEST_LIMIT_BYTES = 512 * 1024;

const Kind = z.enum(OBJECT_KINDS as [string, ...string[]], `expected one of ${OBJECT_KINDS.join(', ')}`);
const ObjectName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'expected a name of lower-case letters, digits, - and .');
const KindParams = z.object({ kind: Kind });
const ObjectParams = z.object({ kind: Kind, name: ObjectName });

const ClusterObject = z.looseObject({}).meta({
  id: 'ClusterObject',
  description: 'An object as manifests have it, in JSON. Of a Secret, data has the keys without their values.',
});

/** Only of requests: the field that is misspelt must not be ignored. */
const ObjectChange = z.strictObject({
  spec: z.record(z.string(), z.unknown()).optional(),
  metadata: z.strictObject({ annotations: z.record(z.string(), z.string().nullable()) }).optional(),
});

const ObjectList = z
  .object({ items: z.array(ClusterObject) })
  .meta({ id: 'ObjectList', description: 'Objects of a kind, by name.' });
const AppliedObject = z
  .object({ outcome: z.enum(['created', 'configured', 'unchanged']), object: ClusterObject })
  .meta({ id: 'AppliedObject', description: 'What became of a manifest.' });

const Expelled = z
  .object({
    node_id: NodeID,
    step: z
      .enum(EXPULSION_STEPS)
      .describe(
        'What goes on. remove: its rights end. keys: the key of Secrets is replaced. trust, certificate, drop: the other servers trust another CA, get its certificates, and no longer trust the old one. done: nothing that the server knows opens the cluster.',
      ),
    problem: z.string().nullable().describe('Why it has ended before it was done: repeat it.'),
    away: z.array(NodeID).describe('Nodes that were away: they have to join again.'),
    passwords: z
      .array(z.string())
      .describe('When it is done: the Secrets whose passwords the server knows. Change these at the cameras.'),
  })
  .meta({ id: 'Expulsion', description: 'How far a server is from having no rights any more.' });

const toExpelled = ({ nodeId, problem, away, secrets, step }: ExpulsionState): z.output<typeof Expelled> => ({
  node_id: nodeId,
  step,
  problem: problem ?? null,
  away: [...away],
  passwords: [...secrets],
});

const problems = {
  400: problemResponse('A field of the manifest is missing or wrong; the detail names it.'),
  403: problemResponse('This needs the role admin; or the object belongs to the cluster itself.'),
  404: problemResponse('There is no such object.'),
  503: problemResponse('The cluster cannot be reached, or the object was changed at the same time.'),
};

const CAMERA = {
  apiVersion: 'kube-nvr.dev/v1alpha1',
  kind: 'Camera',
  metadata: { name: 'gate' },
  spec: { source: 'rtsp://10.0.0.9/stream1', credentialsSecretRef: { name: 'gate-login' } },
};
const INVITATION = {
  token: 'nvrjoin.0123456789.EXAMPLE.EXAMPLE',
  node_id: 'rack-2',
  expires_at: TIME,
};

const EXPULSION = { node_id: 'rack-3', step: 'keys', problem: null, away: [], passwords: [] };

async function answered<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (err) {
    if (err instanceof ManifestError) throw new ApiError(400, 'invalid-request', err.message);
    if (err instanceof ExpulsionError && err.code === 'unknown-node')
      throw new ApiError(404, 'unknown-node', err.message);
    if (err instanceof ExpulsionError || err instanceof RotationError)
      throw new ApiError(409, 'membership-conflict', err.message);
    if (err instanceof IssueError) throw new ApiError(503, 'cluster-unavailable', err.message);
    if (!(err instanceof StoreError)) throw err;
    if (err.status === 404) throw new ApiError(404, 'not-found', err.message);
    if (err.status === 403) throw new ApiError(403, 'forbidden', err.message);
    // The schema of the kind refused a write. The message names the field, as on the API server.
    if (err.status === 400 || err.status === 422) throw new ApiError(400, 'invalid-request', err.message);
    throw new ApiError(503, 'cluster-unavailable', err.message, { cause: err });
  }
}

export const objectRoutes: ApiRoutes = async (app, { deps: { store } }) => {
  if (!store) return;
  const { objects, admission, rotation, expulsion } = store;
  app.get(
    '/api/cluster/:kind',
    {
      config: { role: 'admin', examples: { 200: { items: [CAMERA] } } },
      schema: {
        operationId: 'listObjects',
        summary: 'All objects of a kind',
        description: 'Only in clusters of servers without Kubernetes.',
        tags: ['cluster'],
        params: KindParams,
        response: { 200: ObjectList, ...problems },
      },
    },
    async ({ params: { kind } }) => ({ items: [...(await answered(objects.list(kind)))] }),
  );

  app.get(
    '/api/cluster/:kind/:name',
    {
      config: { role: 'admin', examples: { 200: CAMERA } },
      schema: {
        operationId: 'getObject',
        summary: 'An object',
        tags: ['cluster'],
        params: ObjectParams,
        response: { 200: ClusterObject, ...problems },
      },
    },
    async ({ params: { kind, name } }) => answered(objects.get(kind, name)),
  );

  app.put(
    '/api/cluster/:kind/:name',
    {
      bodyLimit: MANIFEST_LIMIT_BYTES,
      config: {
        role: 'admin',
        audit: 'apply-object',
        examples: { body: CAMERA, 200: { outcome: 'configured', object: CAMERA } },
      },
      schema: {
        operationId: 'applyObject',
        summary: 'Create an object, or change it to what the manifest says',
        description:
          'Fields that an earlier manifest had and this one lacks are removed; those of others stay, such as the status. namespace and status of the manifest are ignored.',
        tags: ['cluster'],
        params: ObjectParams,
        querystring: z.object({
          dry_run: flag().default(false).describe('true: check the manifest, and change nothing.'),
        }),
        body: ClusterObject,
        response: {
          200: AppliedObject,
          ...problems,
        },
      },
    },
    async (request) => {
      const { kind, name } = request.params;
      tell(request, { kind, object: name });
      return answered(objects.apply(kind, name, request.body, { isTried: request.query.dry_run }));
    },
  );

  app.patch(
    '/api/cluster/:kind/:name',
    {
      bodyLimit: MANIFEST_LIMIT_BYTES,
      config: {
        role: 'admin',
        audit: 'apply-object',
        examples: { body: { spec: { placement: { preferredNode: 'rack-2' } } }, 200: CAMERA },
      },
      schema: {
        operationId: 'changeObject',
        summary: 'Change some fields of the spec, or annotations, of an object',
        description: 'All other fields stay. A field that is null is removed (RFC 7396).',
        tags: ['cluster'],
        params: ObjectParams,
        body: ObjectChange,
        response: { 200: ClusterObject, ...problems },
      },
    },
    async (request) => {
      const { kind, name } = request.params;
      tell(request, { kind, object: name });
      return answered(objects.patch(kind, name, request.body));
    },
  );

  app.delete(
    '/api/cluster/:kind/:name',
    {
      config: {
        role: 'admin',
        audit: 'delete-object',
        examples: { 200: { status: 'ok', message: 'cameras/gate is deleted' } },
      },
      schema: {
        operationId: 'deleteObject',
        summary: 'Delete an object; footage stays',
        tags: ['cluster'],
        params: ObjectParams,
        response: { 200: Done, ...problems },
      },
    },
    async (request) => {
      const { kind, name } = request.params;
      tell(request, { kind, object: name });
      await answered(objects.delete(kind, name));
      return { status: 'ok' as const, message: `${kind}/${name} is deleted` };
    },
  );

  app.post(
    '/api/cluster/tokens',
    {
      config: {
        role: 'admin',
        audit: 'invite-node',
        examples: { body: { node_id: 'rack-2' }, 200: INVITATION },
      },
      schema: {
        operationId: 'inviteNode',
        summary: 'Make a token with which one server joins the cluster',
        description: 'It is valid once, for an hour, for a server of this name. It is not shown again.',
        tags: ['cluster'],
        body: z.strictObject({ node_id: NodeID }),
        response: {
          200: z.object({ token: z.string(), node_id: NodeID, expires_at: z.string() }).meta({
            id: 'Invitation',
            description: 'A token for recorder cluster join.',
          }),
          ...problems,
        },
      },
    },
    async (request) => {
      const { node_id: nodeId } = request.body;
      tell(request, { node: nodeId });
      const { token, untilMs } = await answered(admission.invite(nodeId));
      return { token, node_id: nodeId, expires_at: isoTime(untilMs) };
    },
  );

  app.post(
    '/api/cluster/keys',
    {
      config: {
        role: 'admin',
        audit: 'rotate-key',
        examples: { body: {}, 200: { key_id: '0a1b2c3d', secrets: 12, away: [] } },
      },
      schema: {
        operationId: 'rotateKey',
        summary: 'Replace the key that encrypts the Secrets of the cluster',
        description:
          'All nodes get the new key, and all Secrets are encrypted with it. Takes up to half a minute while nodes are away.',
        tags: ['cluster'],
        body: z.strictObject({
          force: z.boolean().optional().describe('Also while nodes are away. They get the key when they return.'),
        }),
        response: {
          200: z
            .object({
              key_id: z.string().describe('Of the new key.'),
              secrets: z.number().int().describe('How many Secrets were encrypted with it.'),
              away: z.array(NodeID).describe('Nodes that do not have it yet.'),
            })
            .meta({ id: 'RotatedKey', description: 'A new key of the cluster.' }),
          ...problems,
          409: problemResponse('A node does not have the new key; the detail names it.'),
        },
      },
    },
    async ({ body }) => {
      const { key, secrets, away } = await answered(rotation.rotate({ force: body.force ?? false }));
      return { key_id: key, secrets, away: [...away] };
    },
  );

  app.post(
    '/api/cluster/expulsion',
    {
      config: {
        role: 'admin',
        audit: 'expel-node',
        examples: { body: { node_id: 'rack-3' }, 202: EXPULSION },
      },
      schema: {
        operationId: 'expelNode',
        summary: 'Take every right back from a server that was stolen or taken over',
        description:
          'It is removed, and the key of Secrets and the CA of the cluster are replaced, while the other servers go on. Takes about a minute: GET /api/cluster/expulsion says how far it is. Repeat it after a failure.',
        tags: ['cluster'],
        body: z.strictObject({
          node_id: NodeID,
          force: z.boolean().optional().describe('Also while other nodes are away. These have to join again.'),
        }),
        response: {
          202: Expelled,
          ...problems,
          409: problemResponse('It is this server, or another one is expelled now.'),
        },
      },
    },
    async (request, reply) => {
      const { node_id: nodeId, force = false } = request.body;
      tell(request, { node: nodeId });
      return reply.code(202).send(toExpelled(await answered(expulsion.begin(nodeId, { force }))));
    },
  );

  app.get(
    '/api/cluster/expulsion',
    {
      config: { role: 'admin', examples: { 200: EXPULSION } },
      schema: {
        operationId: 'getExpulsion',
        summary: 'How far the server is that was expelled last, as this node began it',
        tags: ['cluster'],
        response: { 200: Expelled, ...problems },
      },
    },
    async () => {
      if (!expulsion.state) throw new ApiError(404, 'not-found', 'this node has expelled no server since its start');
      return toExpelled(expulsion.state);
    },
  );
};
