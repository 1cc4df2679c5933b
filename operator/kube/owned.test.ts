import { test } from 'node:test';
import assert from 'node:assert/strict';
import { API_VERSION } from '../../crds/names.ts';
import type { KubeObject } from './api.ts';
import { applyOwned, deleteOwned, ForeignObjectError, type Owner } from './owned.ts';
import { SERVICE } from './resources.ts';
import { MemoryApi } from './test-support.ts';

const OWNER: Owner = { apiVersion: API_VERSION, kind: 'RecorderPool', name: 'default', uid: 'pool-1' };
const NAME = { namespace: 'home', name: 'default-recorder' };
const service: KubeObject = { metadata: NAME, spec: { ports: [] } };

test('an object that is missing is made, with its owner as controller by uid', async () => {
  const api = new MemoryApi();
  await applyOwned(api, SERVICE, service, OWNER);
  assert.deepEqual((await api.get(SERVICE, NAME)).metadata.ownerReferences, [
    { ...OWNER, controller: true, blockOwnerDeletion: true },
  ]);
});

test('our own object is changed', async () => {
  const api = new MemoryApi();
  await applyOwned(api, SERVICE, service, OWNER);
  await applyOwned(api, SERVICE, { ...service, spec: { ports: [9997] } }, OWNER);
  assert.deepEqual((await api.get(SERVICE, NAME))['spec'], { ports: [9997] });
});

test('an object that another owner made is left as it is, and so is that of an earlier pool of the same name', async () => {
  const others = [
    undefined,
    [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'd1', controller: true }],
    [{ ...OWNER, uid: 'pool-0', controller: true }],
  ];
  for (const ownerReferences of others) {
    const api = new MemoryApi();
    await api.create(SERVICE, { metadata: { ...NAME, ownerReferences }, spec: { theirs: true } });
    await assert.rejects(applyOwned(api, SERVICE, service, OWNER), (err) => {
      assert.ok(err instanceof ForeignObjectError);
      assert.equal(err.controller, ownerReferences && `${ownerReferences[0]!.kind}/${ownerReferences[0]!.name}`);
      return true;
    });
    await deleteOwned(api, SERVICE, NAME, OWNER);
    assert.deepEqual((await api.get(SERVICE, NAME))['spec'], { theirs: true });
  }
});

test('our own object is deleted; what is gone already is no error', async () => {
  const api = new MemoryApi();
  await applyOwned(api, SERVICE, service, OWNER);
  await deleteOwned(api, SERVICE, NAME, OWNER);
  await assert.rejects(api.get(SERVICE, NAME), { status: 404 });
  await deleteOwned(api, SERVICE, NAME, OWNER);
});
