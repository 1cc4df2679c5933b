// Asks the other servers of a cluster for the keys that encrypt its Secrets.

import { z } from 'zod';
import { messageOf } from '../../base/error.ts';
import { KEYS_PATH } from '../certificates/ask-to-join.ts';
import { otherMembers, type MembersOptions } from './other-members.ts';

const TIMEOUT_MS = 3_000;

const Answer = z.object({ keys: z.string().max(65_536) });

/** The text of the file of keys from each member that answers, one after the other. Throws ApiError. */
export async function* keysOfMembers(options: MembersOptions): AsyncGenerator<string> {
  for await (const { name, ask } of otherMembers(options)) {
    try {
      const { status, value } = await ask(KEYS_PATH, { method: 'GET', timeoutMs: TIMEOUT_MS });
      if (status === 200) yield Answer.parse(value).keys;
    } catch (err) {
      options.log.debug({ node: name, problem: messageOf(err) }, 'a member did not give the keys of the cluster');
    }
  }
}
