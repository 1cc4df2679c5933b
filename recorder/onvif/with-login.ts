// Sends a request with the camera's login, unless the camera is known to refuse it, and remembers the result.

import { checkRefused, LoginError, type LoginMemory } from '../rtsp/login.ts';
import { LoginRefused, OnvifError } from './error.ts';

/** `mayBeClock`: a refusal may only mean that the camera's clock was set since its time was read, and is not remembered. */
export async function withLogin<T>(
  memory: LoginMemory,
  question: () => Promise<T>,
  { mayBeClock }: { readonly mayBeClock: boolean },
): Promise<T> {
  try {
    checkRefused(memory);
    const answer = await question();
    memory.accepted();
    return answer;
  } catch (err) {
    if (err instanceof LoginError) throw new OnvifError('unauthorized', err.message, { cause: err });
    if (err instanceof LoginRefused && !mayBeClock) memory.refused();
    throw err;
  }
}
