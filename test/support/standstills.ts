// What a recorder logged about times in which it stood still, and whether its own work was the cause.

interface Standstill {
  readonly seconds: number;
  /** Processor time of its main thread meanwhile. */
  readonly workedSeconds: number;
}

/** Those for most of which the recorder had a processor: its machine may have been slow, but was not away. */
export const standstillsByWork = (output: string): readonly Standstill[] =>
  output
    .split('\n')
    .filter((line) => line.includes('"msg":"this process stood still"'))
    .map((line) => JSON.parse(line) as Standstill)
    .filter(({ seconds, workedSeconds }) => workedSeconds > seconds / 2);
