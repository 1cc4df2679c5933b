// Common code of the demos as processes: they end on Ctrl-C, and report errors that the user can fix in plain words.

/** An error whose message is for the user of the demo. */
export class DemoError extends Error {}

/** Runs a demo until it ends; `signal` asks it to. A `DemoError` is printed and sets the exit code; other errors are thrown. */
export async function runDemo(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stopping.abort());
  try {
    await run(stopping.signal);
  } catch (error) {
    if (!(error instanceof DemoError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
