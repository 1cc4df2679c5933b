// What a suite starts before its tests and ends after them, the last first.

import { after, type TestContext } from 'node:test';

type End = () => unknown;

/** Takes ends as the context of a test does. To be called in the body of the suite. */
export function suiteScope(): Pick<TestContext, 'after'> {
  const ends: End[] = [];
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return { after: (end?: unknown) => void ends.push(end as End) };
}
