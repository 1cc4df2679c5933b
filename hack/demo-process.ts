// What every demo is as a process: it ends on Ctrl-C, and says in its own words what a user can mend.

/** Its message is for whoever started the demo. */
export class DemoError extends Error {}

/** Runs a demo until it ends; `signal` asks it to. A `DemoError` is told and sets the exit code; other errors are thrown. */
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
