// The logger's interface: a subset of pino's, so that the rooms do not depend on pino.

type Fields = Record<string, unknown>;

/** Messages are constant sentences and values go into fields. Never log a password or a URL with a user part. */
export interface Log {
  debug(fields: Fields, message: string): void;
  info(fields: Fields, message: string): void;
  warn(fields: Fields, message: string): void;
  error(fields: Fields, message: string): void;
  child(fields: Fields): Log;
}

/** Drops every line. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};
