// `/api/keys`: the public key for checking the signatures of this node.

import { z } from 'zod';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { NodeKeyError } from '../../jobs/node-key.ts';
import type { JobKeeper, ApiRoutes } from '../deps.ts';
import { KEY } from '../examples.ts';

const Keys = z
  .object({
    node: z.string(),
    keys: z.array(
      z.object({
        algorithm: z.literal('Ed25519'),
        fingerprint: z.string().describe('SHA-256 of the public key in DER (SubjectPublicKeyInfo), hex.'),
        public_key: z.string().describe('PEM.'),
      }),
    ),
  })
  .meta({ id: 'KeyList', description: 'The keys with which signatures of this node can be checked.' });

export const keyRoutes: ApiRoutes = async (app, { deps: { jobs, nodeName } }) => {
  app.get(
    '/api/keys',
    {
      config: { role: 'viewer', cameras: 'none', examples: { 200: { node: 'rack-1', keys: [KEY] } } },
      schema: {
        operationId: 'listKeys',
        summary: 'The public key that this node signs manifests of exports with',
        tags: ['jobs'],
        response: {
          200: Keys,
          503: problemResponse('The key cannot be used; the log of the node says why.'),
        },
      },
    },
    async () => {
      const { publicKey, fingerprint } = await signingKey(jobs);
      return { node: nodeName, keys: [{ algorithm: 'Ed25519' as const, fingerprint, public_key: publicKey }] };
    },
  );
};

/** Rejects with ApiError. */
export async function signingKey(jobs: JobKeeper): ReturnType<JobKeeper['signingKey']> {
  try {
    return await jobs.signingKey();
  } catch (err) {
    if (!(err instanceof NodeKeyError)) throw err;
    const detail = 'the key that signs manifests cannot be used: the log of the node has the reason';
    throw new ApiError(503, 'signing-key-unusable', detail, { cause: err, isExpected: true });
  }
}
