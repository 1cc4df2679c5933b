// Runs work on many items with a limit on how many run at a time.

/**
 * `Promise.all` over `items`, with at most `limit` calls of `work` at a time. A result that is not a promise is used without
 * awaiting.
 */
export async function concurrently<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, index: number) => R | Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const i = next++;
      const result = work(items[i] as T, i);
      results[i] = result instanceof Promise ? await result : result;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
