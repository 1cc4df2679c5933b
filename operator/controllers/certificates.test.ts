import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { newKey, newRequest } from '../../base/x509.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode } from '../../crds/recorder-node.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { ApiError } from '../kube/api.ts';
import { RECORDER_NODE, SECRET } from '../kube/resources.ts';
import { MemoryApi } from '../kube/test-support.ts';
import type { CertificatesOptions } from './certificates.ts';
import { Certificates } from './certificates.ts';

const DAY_MS = 86_400_000;
const NAME = { namespace: 'video', name: 'node-1' };
const OWN = { namespace: 'system', name: 'kube-nvr-authorities' };

const poolNamed = (name: string, spec: object = {}) =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name, namespace: 'video', uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
  });

async function stage() {
  const api = new MemoryApi();
  const clock = new VirtualClock();
  await api.create(RECORDER_NODE, {
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: NAME,
    spec: { nodeName: 'node-1', poolRef: { name: 'default' } },
    status: {},
  });
  const read = async () => parseRecorderNode(await api.get(RECORDER_NODE, NAME));
  let node = await read();
  let podIP = '10.1.0.7';
  const caches = {
    nodesOf: () => [node],
    podsOf: () => [{ metadata: { name: 'p' }, spec: { nodeName: 'node-1' }, status: { podIP, hostIP: '192.0.2.7' } }],
    nodes: new Map([
      ['node-1', { status: { addresses: [{ address: 'node-1.example' }, { address: '198.51.100.7' }] } }],
    ]),
  } as unknown as CertificatesOptions['caches'];
  const made = (): Certificates => new Certificates({ api, caches, ownNamespace: 'system', clock, log: silentLog });
  const certificates = made();
  const keep = async (pool = poolNamed('default'), by = certificates) => {
    const authorities = await by.authoritiesOf(pool);
    const condition = 'status' in authorities ? authorities : await by.sign(pool, authorities);
    node = await read();
    return { condition, spec: node.spec };
  };
  const ask = async (certificateRequest: string | null): Promise<void> => {
    await api.mergePatch(RECORDER_NODE, NAME, { status: { certificateRequest } });
    node = await read();
  };
  return { api, clock, keep, ask, made, move: (ip: string) => (podIP = ip) };
}

test('a recorder that requests a certificate gets the names that the operator knows, whatever the request contains', async () => {
  const { keep, ask } = await stage();
  const before = await keep();
  assert.deepEqual([before.spec.certificate, before.spec.peerAddress], [undefined, undefined], 'nobody asked');
  await ask(await newRequest(newKey()));
  const { spec, condition } = await keep(poolNamed('default', { tls: { mode: 'Auto', names: ['nvr.example'] } }));
  assert.deepEqual([condition.status, spec.peerAddress], ['True', 'https://10.1.0.7:9995']);
  const leaf = new X509Certificate(spec.certificate?.certificate ?? '');
  const ca = new X509Certificate(spec.certificate?.authorities ?? '');
  assert.ok(leaf.checkIssued(ca) && leaf.verify(ca.publicKey));
  for (const name of ['node-1', 'node-1.example', 'default-recorder', 'default-recorder.video.svc', 'nvr.example']) {
    assert.equal(leaf.checkHost(name), name);
  }
  for (const ip of ['10.1.0.7', '192.0.2.7', '198.51.100.7']) assert.equal(leaf.checkIP(ip), ip);
  assert.match(leaf.subjectAltName ?? '', /URI:kube-nvr:\/\/video\/default\/node-1(,|$)/);
  assert.ok(!ca.subjectAltName && ca.ca && !leaf.ca);
});

test('an IPv6 literal in the template of addresses is an address of the certificate', async () => {
  const { keep, ask } = await stage();
  await ask(await newRequest(newKey()));
  const advertise = { type: 'Template', template: 'https://[2001:db8::7]:9997' };
  const { spec } = await keep(poolNamed('default', { tls: { mode: 'Auto' }, advertise }));
  assert.equal(new X509Certificate(spec.certificate?.certificate ?? '').checkIP('2001:db8::7'), '2001:db8::7');
});

test('it is signed again for another address, another key, and when a third of its time is left; else it stays', async () => {
  const { api, clock, keep, ask, move } = await stage();
  await ask(await newRequest(newKey()));
  const certificateOf = async () => (await keep()).spec.certificate?.certificate;
  const first = await certificateOf();
  const writes = api.calls.length;
  clock.stepWall(59 * DAY_MS);
  assert.equal(await certificateOf(), first);
  assert.ok(!api.calls.slice(writes).some((call) => !call.startsWith('get')), 'nothing is written');
  clock.stepWall(2 * DAY_MS);
  const second = await certificateOf();
  assert.notEqual(second, first);
  move('10.1.0.8');
  const third = await keep();
  assert.ok(new X509Certificate(third.spec.certificate?.certificate ?? '').checkIP('10.1.0.8'));
  assert.equal(third.spec.peerAddress, 'https://10.1.0.8:9995');
  await ask(await newRequest(newKey()));
  assert.notEqual(await certificateOf(), third.spec.certificate?.certificate);
});

test('whenever the operator goes away, the certificate of a node is valid for a month', async () => {
  const { clock, keep, ask } = await stage();
  await ask(await newRequest(newKey()));
  const left: number[] = [];
  for (let day = 0; day < 200; day++) {
    const { certificate, authorities } = (await keep()).spec.certificate ?? { certificate: '', authorities: '' };
    const [leaf, ca] = [new X509Certificate(certificate), new X509Certificate(authorities)];
    assert.ok(leaf.verify(ca.publicKey) && clock.wallMs() > Date.parse(leaf.validFrom));
    left.push((Date.parse(leaf.validTo) - clock.wallMs()) / DAY_MS);
    clock.stepWall(DAY_MS);
  }
  assert.ok(Math.min(...left) >= 29, `${Math.min(...left)} days`);
  // It was renewed more than once.
  assert.ok(left.filter((days, day) => days > (left[day - 1] ?? days)).length >= 2);
});

test('a recorder of an older version, which requests nothing, has no listener for peers', async () => {
  const { keep, ask } = await stage();
  await ask(await newRequest(newKey()));
  assert.ok((await keep()).spec.peerAddress);
  await ask(null);
  const { spec } = await keep();
  assert.deepEqual([spec.peerAddress, spec.certificate], [undefined, undefined]);
});

test('an invalid request is not signed, and the pool names its node', async () => {
  const { keep, ask } = await stage();
  await ask('-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----');
  const { condition, spec } = await keep();
  assert.deepEqual([condition.status, condition.reason], ['False', 'RequestRefused']);
  assert.match(condition.message, /node-1/);
  assert.equal(spec.certificate, undefined);
});

test('each pool has a CA of its own; the keys are in one Secret beside the operator, and outlive its leaders', async () => {
  const { api, keep, ask, made } = await stage();
  await ask(await newRequest(newKey()));
  const first = (await keep()).spec.certificate?.authorities ?? '';
  const other = await made().authoritiesOf(poolNamed('north'));
  assert.ok(Array.isArray(other) && other[0].certificate !== first);
  const { data } = (await api.get(SECRET, OWN)) as unknown as { data: object };
  assert.deepEqual(Object.keys(data).sort(), ['video_default', 'video_north']);
  assert.equal((await keep(poolNamed('default'), made())).spec.certificate?.authorities, first, 'the next leader');
});

test('the next CA is trusted a day before it signs, and the one before as long as it is valid', async () => {
  const { clock, keep, ask } = await stage();
  await ask(await newRequest(newKey()));
  const issued = async () => {
    const { certificate = '', authorities = '' } = (await keep()).spec.certificate ?? {};
    const trusted = authorities.match(/-----BEGIN[^]+?END CERTIFICATE-----\n/g) ?? [];
    const leaf = new X509Certificate(certificate);
    const by = trusted.findIndex((pem) => leaf.verify(new X509Certificate(pem).publicKey));
    return [trusted.length, by];
  };
  assert.deepEqual(await issued(), [1, 0]);
  clock.stepWall(7.1 * 365 * DAY_MS);
  assert.deepEqual(await issued(), [2, 0], 'published, and signs nothing yet');
  clock.stepWall(1.1 * DAY_MS);
  assert.deepEqual(await issued(), [2, 1]);
  clock.stepWall(3 * 365 * DAY_MS);
  assert.deepEqual(await issued(), [1, 0], 'the first has ended');
});

test('an operator that may not store keys reports it, and continues with everything else', async () => {
  const { api, keep } = await stage();
  api.before = (_verb, { plural }) => {
    if (plural === 'secrets') throw new ApiError(403, 'Forbidden', 'no rights');
  };
  const { condition } = await keep();
  assert.deepEqual([condition.status, condition.reason], ['False', 'AuthorityUnavailable']);
});
