import assert from 'node:assert/strict';
import { test } from 'node:test';
import { untolerated, type Taint } from './tolerated.ts';

const allowsDaemons = (
  { taints }: { readonly taints?: readonly Taint[] },
  tolerations?: Parameters<typeof untolerated>[1],
): boolean => untolerated(taints, tolerations).length === 0;
const taint = (key: string, effect = 'NoSchedule', value?: string) => ({ key, effect, ...(value && { value }) });

test('a taint keeps pods off a node, unless it only asks for that or the controller of DaemonSets tolerates it', () => {
  assert.equal(allowsDaemons({}), true);
  for (const effect of ['NoSchedule', 'NoExecute']) {
    assert.equal(allowsDaemons({ taints: [taint('node-role.kubernetes.io/control-plane', effect)] }), false);
    assert.equal(allowsDaemons({ taints: [taint('node.kubernetes.io/unreachable', effect)] }), true);
  }
  assert.equal(allowsDaemons({ taints: [taint('old', 'PreferNoSchedule')] }), true);
});

test('a toleration has to fit in key, value and effect; every taint has to be tolerated', () => {
  const taints = [taint('use', 'NoSchedule', 'video')];
  const allows = (toleration: object, on = taints): boolean => allowsDaemons({ taints: on }, [toleration]);
  assert.equal(allows({ operator: 'Exists' }), true);
  assert.equal(allows({ key: 'use', operator: 'Exists' }), true);
  assert.equal(allows({ key: 'use', value: 'video', effect: 'NoSchedule' }), true);
  assert.equal(allows({ key: 'use', value: 'other' }), false);
  assert.equal(allows({ key: 'use', value: 'video', effect: 'NoExecute' }), false);
  assert.equal(allows({ key: 'other', operator: 'Exists' }), false);
  assert.equal(allows({ key: 'use', operator: 'Exists' }, [...taints, taint('more')]), false);
});
