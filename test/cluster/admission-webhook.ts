// An admission webhook as anybody may have one in their cluster: the API server asks it before it writes, and it says no, or
// nothing at all.

import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ControlPlane } from './control-plane.ts';

const NAME = 'in-the-way';
const PATH = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
/** The most that the API server waits for one. */
const TIMEOUT_SECONDS = 30;

interface Rule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  readonly resources: readonly string[];
}

export class AdmissionWebhook {
  readonly #server: Server;
  readonly #controlPlane: ControlPlane;
  /** What it does with whoever asks from now on. */
  answers: 'no' | 'nothing' = 'nothing';

  private constructor(server: Server, controlPlane: ControlPlane) {
    this.#server = server;
    this.#controlPlane = controlPlane;
  }

  /** From now on the API server asks it about what `rule` names. */
  static async start(controlPlane: ControlPlane, rule: Rule): Promise<AdmissionWebhook> {
    const { authority, api } = controlPlane;
    const { cert, key } = authority.issue(NAME, { commonName: NAME, hosts: ['127.0.0.1'] });
    const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const webhook = new AdmissionWebhook(server, controlPlane);
    server.on('request', (request, response: ServerResponse) => {
      if (webhook.answers === 'no') void text(request).then((review) => refuse(review, response));
    });
    const { port } = server.address() as AddressInfo;
    await api.create(PATH, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: NAME },
      webhooks: [
        {
          name: `${NAME}.example.com`,
          clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(authority.cert).toString('base64') },
          rules: [rule],
          failurePolicy: 'Fail',
          sideEffects: 'None',
          timeoutSeconds: TIMEOUT_SECONDS,
          admissionReviewVersions: ['v1'],
        },
      ],
    });
    return webhook;
  }

  /** Out of the way. */
  async close(): Promise<void> {
    await this.#controlPlane.api.delete(`${PATH}/${NAME}`);
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function refuse(review: string, response: ServerResponse): void {
  const { request } = JSON.parse(review) as { readonly request: { readonly uid: string } };
  response.setHeader('content-type', 'application/json');
  response.end(
    JSON.stringify({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: request.uid, allowed: false, status: { code: 403, message: 'not here' } },
    }),
  );
}
