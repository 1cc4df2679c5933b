// Errors as messages: a refusal keeps its kind and its code, a failure of the system its code, and a fault of the program its stack.

import { CodedError, errorCode } from '../../base/error.ts';
import { ArchiveError, WrongDiskError } from '../archive/disk/faults.ts';
import { SwitchError } from '../contract/camera-switch.ts';
import { ProtectionError } from '../contract/protection.ts';
import { OnvifError } from '../onvif/error.ts';
import { DoctorBusy } from '../probe/report/examiner.ts';
import { StillError } from '../snapshots/error.ts';

export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly code: string | undefined;
  readonly stack: string | undefined;
}

const withCode =
  <Code extends string>(Kind: new (code: Code, message: string) => CodedError<Code>) =>
  ({ code, message }: SentError): Error =>
    new Kind(code as Code, message);

/** What callers of the engine tell apart, by name. */
const KINDS: ReadonlyMap<string, (sent: SentError) => Error> = new Map([
  ['ArchiveError', ({ message }: SentError) => new ArchiveError(message)],
  ['WrongDiskError', withCode(WrongDiskError)],
  ['SwitchError', withCode(SwitchError)],
  ['ProtectionError', withCode(ProtectionError)],
  ['StillError', withCode(StillError)],
  ['OnvifError', withCode(OnvifError)],
  ['LoginRefused', withCode(OnvifError)],
  ['DoctorBusy', ({ message }: SentError) => new DoctorBusy(message)],
  ['AbortError', ({ name, message }: SentError) => new DOMException(message, name)],
  ['TimeoutError', ({ name, message }: SentError) => new DOMException(message, name)],
  ['TypeError', ({ message }: SentError) => new TypeError(message)],
  ['RangeError', ({ message }: SentError) => new RangeError(message)],
]);

export function sentError(thrown: unknown): SentError {
  if (!(thrown instanceof Error)) return { name: 'Error', message: String(thrown), code: undefined, stack: undefined };
  const { name, message, stack } = thrown;
  return { name, message, code: errorCode(thrown), stack };
}

/** An error of another kind with a code is one of the system; one without a code is a fault of the program (`isExpected`). */
export function receivedError(sent: SentError): Error {
  const { name, message, code, stack } = sent;
  const err =
    KINDS.get(name)?.(sent) ?? Object.assign(new Error(message), { name, ...(code !== undefined && { code }) });
  if (stack !== undefined) err.stack = stack;
  return err;
}
