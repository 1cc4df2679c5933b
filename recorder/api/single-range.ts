// The header `Range` in, the one range of bytes in it out (RFC 9110 §14).

/**
 * Undefined when all of the file is to be sent: without the header, when it cannot be understood, or when it names
 * several ranges, which a server may answer with all (§14.2).
 */
export function singleRange(
  header: string | undefined,
  sizeBytes: number,
): { readonly from: number; readonly to: number } | 'unsatisfiable' | undefined {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? '');
  if (!match) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return undefined;
  const from = first === '' ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  if (first !== '' && last !== '' && Number(last) < from) return undefined;
  const to = first === '' || last === '' ? sizeBytes : Math.min(sizeBytes, Number(last) + 1);
  return from < to ? { from, to } : 'unsatisfiable';
}
