// The caller of a request, and its rights.

import type { Role } from '../config/schema.ts';
import { inScope } from '../../base/camera-scope.ts';
import type { Session } from './sessions.ts';

/** Each role includes the rights of the roles before it, but viewers only look: they do not report. */
const RANKS: Readonly<Record<Role, number>> = { reporter: 0, viewer: 1, operator: 2, admin: 3 };

/** Makes requests, with the rights of a user or of a token. */
export interface Caller {
  /** Of the user or the token, for logs and audit; never the token. */
  readonly name: string;
  /** Undefined: a known user who may do nothing here. */
  readonly role: Role | undefined;
  /** Has the right to take footage along as exports, which the roles from operator on have anyway. */
  readonly exports?: boolean | undefined;
  /** False for a token with a list of cameras. */
  readonly seesAll: boolean;
  /** Whether the camera is in the caller's scope. One that is not must be treated as if it did not exist. */
  readonly sees: (cameraId: string) => boolean;
  /** The patterns of the cameras in its scope, as the configuration has them. */
  readonly patterns?: readonly string[] | undefined;
  /** For tokens of the API server: all cameras in its scope, unless it sees all. */
  readonly cameras?: ReadonlySet<string> | undefined;
  /** Set if its request has the cookie of a session, or a link. */
  readonly session?: Session | undefined;
}

/** The rights in the configuration of a user or a token. */
interface Rights {
  readonly name: string;
  readonly role: Role;
  readonly cameras?: readonly string[] | undefined;
  readonly export?: boolean | undefined;
}

export const callerFor = ({ name, role, cameras, export: exports }: Rights): Caller => ({
  name,
  role,
  exports,
  seesAll: cameras === undefined,
  sees: cameras ? (cameraId) => inScope(cameras, cameraId) : () => true,
  patterns: cameras,
});

/** The cameras in its scope, for another node: their ids, or patterns. */
export const scopeOf = ({ seesAll, patterns, cameras }: Caller): readonly string[] =>
  seesAll ? ['*'] : (patterns ?? [...(cameras ?? [])]);

export const hasRole = (caller: Pick<Caller, 'role'>, role: Role): boolean =>
  caller.role !== undefined && (caller.role === 'viewer' ? role === 'viewer' : RANKS[caller.role] >= RANKS[role]);

export const mayExport = (caller: Pick<Caller, 'role' | 'exports'>): boolean =>
  hasRole(caller, 'operator') || (hasRole(caller, 'viewer') && caller.exports === true);

/** The role of a caller who may look, as answers have it. */
export const lookingRole = ({ role = 'viewer' }: Pick<Caller, 'role'>): Exclude<Role, 'reporter'> =>
  role === 'reporter' ? 'viewer' : role;
