// The logger's interface: a part of pino's, so that rooms do not depend on pino itself.

type Fields = Record<string, unknown>;

/** Messages are constant sentences, values go in fields; never a password or a URL with a user part. */
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
