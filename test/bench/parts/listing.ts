import type { Bench } from '../bench.ts';
export async function measureListing(_bench: Bench): Promise<void> {}
