import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acrossBorder } from '../../test/support/border.ts';
import { isExpected } from '../../base/error.ts';
import { ArchiveError, WrongDiskError } from '../archive/disk/faults.ts';
import { SwitchError } from '../contract/camera-switch.ts';
import { ProtectionError } from '../contract/protection.ts';
import { LoginRefused, OnvifError } from '../onvif/error.ts';
import { DoctorBusy } from '../probe/report/examiner.ts';
import { StillError } from '../snapshots/error.ts';

/** What is left of an error that a question rejects with. */
async function crossed(err: unknown): Promise<Error> {
  const fail = async (): Promise<void> => {
    throw err;
  };
  try {
    await acrossBorder({ fail }, []).fail();
  } catch (thrown) {
    return thrown as Error;
  }
  return assert.fail('it does not reject');
}

test('a question reaches the part that answers it, with its object, and values are read at once', async () => {
  class Part {
    readonly #factor = 3;
    async times(value: number): Promise<number> {
      return value * this.#factor;
    }
    now(): number {
      return this.#factor;
    }
  }
  const engine = acrossBorder({ name: 'north', ids: ['a'], deep: { part: new Part() } }, ['deep.part.now']);
  assert.deepEqual([engine.name, engine.ids, engine.deep.part.now()], ['north', ['a'], 3]);
  assert.equal(await engine.deep.part.times(4), 12);
});

test('questions are asked in order, and each gets its own answer, whichever is first', async () => {
  const told: number[] = [];
  const waiting: (() => void)[] = [];
  const engine = acrossBorder(
    {
      tell: (value: number): void => void told.push(value),
      async ask(value: number): Promise<number> {
        told.push(value);
        await new Promise<void>((resolve) => waiting.push(resolve));
        return value;
      },
    },
    [],
  );
  engine.tell(1);
  const asked = [engine.ask(2), engine.ask(3)];
  engine.tell(4);
  const last = await Promise.race([
    ...asked,
    (async () => {
      while (told.length < 4) await Promise.resolve();
      waiting[1]?.();
      return asked[1];
    })(),
  ]);
  waiting[0]?.();
  assert.deepEqual([told, last, await Promise.all(asked)], [[1, 2, 3, 4], 3, [2, 3]]);
});

test('a refusal is of its own kind and has its code on the other side', async () => {
  for (const err of [
    new SwitchError('unknown-camera', 'none'),
    new ProtectionError('too-many-protections', 'full'),
    new StillError('camera-timeout', 'late'),
    new OnvifError('no-ptz', 'fixed'),
    new WrongDiskError('archive-missing', 'away'),
    new ArchiveError('damaged'),
    new DoctorBusy('another camera is being examined'),
  ]) {
    const there = await crossed(err);
    assert.equal(there.constructor, err.constructor);
    const { name, message } = there;
    assert.deepEqual([name, message, Reflect.get(there, 'code')], [err.name, err.message, Reflect.get(err, 'code')]);
  }
  const login = await crossed(new LoginRefused('wrong password'));
  assert.ok(login instanceof OnvifError && login.code === 'unauthorized');
});

test('a failure of the system is expected on the other side, and a fault of the program is not', async () => {
  const full = await crossed(Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' }));
  assert.ok(isExpected(full));
  assert.equal(Reflect.get(full, 'code'), 'ENOSPC');
  const bugs = [
    new Error('oops'),
    new TypeError('x is undefined'),
    Object.assign(new RangeError('no'), { code: 'ERR_X' }),
  ];
  for (const bug of bugs) {
    const there = await crossed(bug);
    assert.ok(!isExpected(there), bug.message);
    assert.equal(there.stack, bug.stack, 'it says where in the engine it was');
  }
  assert.equal((await crossed('a text')).message, 'a text');
});

test('a question is given up by its signal, also one that was aborted before', async () => {
  const seen: unknown[] = [];
  const engine = acrossBorder(
    {
      wait: (name: string, signal: AbortSignal): Promise<void> =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            seen.push(name);
            reject(signal.reason as Error);
          });
        }),
    },
    [],
  );
  const later = new AbortController();
  const asked = engine.wait('later', later.signal);
  const early = engine.wait('early', AbortSignal.abort());
  await assert.rejects(early, { name: 'AbortError' });
  assert.deepEqual(seen, ['early']);
  later.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  assert.deepEqual(seen, ['early', 'later']);
  later.abort();
});
