// The logger's interface: a subset of pino's, so that the rooms do not depend on pino.

type Fields = Record<string, unknown>;
type Line = (fields: Fields, message: string) => void;

/** What pino offers. */
export interface Lines {
  readonly debug: Line;
  readonly info: Line;
  readonly warn: Line;
  readonly error: Line;
  child(fields: Fields): Lines;
}

/** Messages are constant sentences and values go into fields. Never log a password or a URL with a user part. */
export interface Log extends Lines {
  /** For an error that nobody expects at this place: a fault of this program. Logged once with its stack, and counted. */
  bug(fields: Fields & { readonly err: unknown }, message: string): void;
  child(fields: Fields): Log;
}

/** Drops every line. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  bug() {},
  child: () => silentLog,
};
