// The code blocks of a page of the documentation, so that tests run what the page says.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Block {
  /** Empty: what the block before it prints. */
  readonly language: string;
  readonly text: string;
}

/** `page`: from the root of the repository. */
export function blocks(page: string): Block[] {
  const text = readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', body = '']) => ({
    language,
    text: body,
  }));
}
