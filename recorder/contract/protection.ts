// Footage that a user wants kept, and how it is asked for.

import { CodedError } from '../../base/error.ts';

export interface Protection {
  readonly id: string;
  readonly cameraId: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly createdMs: number;
  /** Why, in the user's words. */
  readonly note: string | undefined;
  /** When it ends by itself; undefined means never. */
  readonly untilMs: number | undefined;
  /** Name of the token that requested it; undefined when it is not known. */
  readonly by: string | undefined;
}

/** A protection before it is stored. */
export type NewProtection = Omit<Protection, 'id' | 'createdMs'>;

type ProtectionErrorCode = 'too-many-protections' | 'protections-unreadable';

/** A protection cannot be stored. */
export class ProtectionError extends CodedError<ProtectionErrorCode> {
  override readonly name = 'ProtectionError';
}

/** Windows of cameras that are never removed. */
export interface ProtectedWindows {
  /** By camera and start. */
  list(cameraId?: string): Promise<readonly Protection[]>;
  /** Keeps [fromMs, toMs) of a camera from now on. Resolves when the disk has it; throws ProtectionError. */
  add(window: NewProtection, nowMs: number): Promise<Protection>;
  /** Removes a protection and resolves to it; to undefined when there is none with that id. */
  remove(id: string): Promise<Protection | undefined>;
}
