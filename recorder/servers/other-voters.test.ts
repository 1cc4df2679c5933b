import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { silentLog } from '../../base/log.ts';
import { shortRequest } from '../../base/short-request.ts';
import { newKey, newRequest } from '../../base/x509.ts';
import { startMember } from '../../test/support/member.ts';
import { AdmissionError } from '../certificates/admission.ts';
import { CERTIFICATE_PATH } from '../certificates/ask-to-join.ts';
import { IssueError } from '../certificates/issuer.ts';
import { nodesPath } from '../certificates/secrets.ts';
import { OtherVoters } from './other-voters.ts';

const ABOUT = { namespace: 'default', pool: 'default' };

/** rack-1 has the vote and the key of the CA; rack-2 has neither, and a certificate. */
async function stage(t: TestContext) {
  const member = await startMember(t);
  const { store, issuer, port, authorities } = member;
  const at = (name: string, role: string, peerAddress: string) =>
    store.call('POST', nodesPath('default'), { metadata: { name }, spec: { role, peerAddress } });
  const place = `https://127.0.0.1:${port}`;
  // Port 9 refuses connections.
  await at('rack-0', 'Voter', 'https://127.0.0.1:9');
  await at('rack-1', 'Voter', place);
  const key = newKey();
  const request = await newRequest(key);
  const { certificate } = await issuer.issue({ nodeId: 'rack-2', request, names: [] });
  const own = () => ({ certificate, key, ca: authorities });
  const voters = new OtherVoters({ ...ABOUT, api: store, nodeId: 'rack-2', own, log: silentLog });
  return { ...member, voters, request, key, place };
}

test('a server without a vote gets its next certificate from one that has a vote, in its own name only', async (t) => {
  const { voters, request, key, authorities, audited } = await stage(t);
  const issued = await voters.issue({ nodeId: 'rack-1', request, names: ['192.0.2.2'] });
  const certificate = new X509Certificate(issued.certificate);
  assert.deepEqual([certificate.subject, certificate.checkIP('192.0.2.2')], ['CN=rack-2', '192.0.2.2']);
  assert.ok(certificate.verify(new X509Certificate(authorities).publicKey));
  assert.equal(issued.authorities, authorities);
  assert.ok(certificate.checkPrivateKey(createPrivateKey(key)));
  assert.deepEqual(
    audited.map(({ what, node }) => [what, node]),
    [['renew-certificate', 'rack-2']],
  );
  await assert.rejects(
    voters.issue({ nodeId: 'rack-2', request, names: ['rack-1'] }),
    (err) => err instanceof IssueError && /rack-1 is the node rack-1/.test(err.message),
  );
});

test('a server that joins at one without a vote is let in by one that has a vote, once', async (t) => {
  const { voters, admission, authorities } = await stage(t);
  const { token } = await admission.invite('rack-3');
  const asked = { token, nodeId: 'rack-3', request: await newRequest(newKey()), names: [] };
  const admitted = await voters.admit(asked);
  assert.equal(new X509Certificate(admitted.certificate).subject, 'CN=rack-3');
  assert.deepEqual([admitted.authorities, admitted.pool], [authorities, 'default']);
  await assert.rejects(voters.admit(asked), (err) => err instanceof AdmissionError && err.code === 'wrong-token');
});

test('while no server with a vote can be asked, the reason is told', async (t) => {
  const { voters, store, request } = await stage(t);
  await store.call('DELETE', `${nodesPath('default')}/rack-1`);
  await assert.rejects(
    voters.issue({ nodeId: 'rack-2', request, names: [] }),
    (err) => err instanceof IssueError && /no server with a vote can be asked now/.test(err.message),
  );
});

test('who presents no certificate gets none', async (t) => {
  const { place, request, authorities } = await stage(t);
  const tls = { ca: authorities, checkServerIdentity: () => undefined };
  const body = { request, names: [] };
  const asked = { method: 'POST', body, tls, timeoutMs: 10_000, maxBytes: 10_000 };
  assert.equal((await shortRequest(new URL(CERTIFICATE_PATH, place), asked)).status, 403);
});
