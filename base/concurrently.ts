// Many things to do in, some of them under way at any time.

/** `Promise.all` over `items`, at most `limit` at a time. What is known without waiting is not waited for. */
export async function concurrently<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => R | Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const i = next++;
      const result = work(items[i] as T);
      results[i] = result instanceof Promise ? await result : result;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}
