import assert from 'node:assert/strict';
import { until } from './until.ts';

/**
 * A still image that the recorder has ffmpeg make. It gives up after ten seconds and answers 503, and a viewer asks again: a busy machine
 * takes longer.
 */
export const imageAt = (url: string): Promise<Response> =>
  until(`an image at ${url}`, async () => {
    const answer = await fetch(url);
    if (answer.status === 503) throw new Error(await answer.text());
    assert.equal(answer.status, 200);
    return answer;
  });
