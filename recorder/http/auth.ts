// Who may do what: a presented token in, a role out. Tokens are kept and compared as SHA-256 digests only.

import type { FastifyRequest } from 'fastify';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { Role, TokenConfig } from '../config/schema.ts';
import { ApiError } from './problem.ts';

/** Each role may do what those before it may. */
const RANKS: Readonly<Record<Role, number>> = { viewer: 1, operator: 2, admin: 3 };

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

export interface AuthOptions {
  readonly mode: 'token' | 'kubernetes' | 'none';
  readonly tokens: readonly TokenConfig[];
}

/** Where a route accepts credentials. */
export type CredentialPlace = 'header' | 'header-or-query';

export class Authenticator {
  readonly #open: boolean;
  readonly #tokens: readonly { readonly role: Role; readonly digest: Buffer }[];

  constructor(options: AuthOptions) {
    this.#open = options.mode === 'none';
    this.#tokens = options.tokens.map((token) => ({ role: token.role, digest: Buffer.from(token.sha256, 'hex') }));
  }

  /** The caller's role; undefined without credentials or with wrong ones. */
  roleOf(request: FastifyRequest, place: CredentialPlace): Role | undefined {
    if (this.#open) return 'admin';
    const presented = tokenInHeader(request) ?? (place === 'header-or-query' ? tokenInQuery(request) : undefined);
    return presented === undefined ? undefined : this.#roleOfToken(presented);
  }

  /** Throws 401 or 403 unless the caller has at least `role`. */
  require(request: FastifyRequest, role: Role, place: CredentialPlace): void {
    const held = this.roleOf(request, place);
    if (held === undefined) {
      throw new ApiError(
        401,
        'unauthorized',
        'send a token: "Authorization: Bearer …", or Basic with the token as password',
      );
    }
    if (RANKS[held] < RANKS[role]) {
      throw new ApiError(403, 'forbidden', `this needs the role ${role}, and the token has the role ${held}`);
    }
  }

  #roleOfToken(token: string): Role | undefined {
    const digest = sha256(token);
    let role: Role | undefined;
    // Every token is compared, so that the time taken tells nothing.
    for (const known of this.#tokens) if (timingSafeEqual(known.digest, digest)) role = known.role;
    return role;
  }
}

/** `Bearer <token>`, or `Basic` with any user name and the token as password (RFC 7617). */
function tokenInHeader(request: FastifyRequest): string | undefined {
  const match = /^(Bearer|Basic) +(\S+) *$/i.exec(request.headers.authorization ?? '');
  if (!match) return undefined;
  const value = match[2] as string;
  if ((match[1] as string).toLowerCase() === 'bearer') return value;
  const pair = Buffer.from(value, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

/** For what cannot send headers: WebSocket and media elements of browsers (RFC 6750 §2.3). */
function tokenInQuery(request: FastifyRequest): string | undefined {
  const token = (request.query as Record<string, unknown> | undefined)?.['access_token'];
  return typeof token === 'string' && token !== '' ? token : undefined;
}

/**
 * The token of a recorder without configured ones: read from `<workDir>/admin.token`, made there at the first start. The
 * log says where it is, never what it is.
 */
export async function adminToken(workDir: string, log: Log): Promise<TokenConfig> {
  const file = join(workDir, 'admin.token');
  const token = (await readToken(file)) ?? (await createToken(workDir, file, log));
  return { name: 'admin.token', role: 'admin', sha256: sha256(token).toString('hex') };
}

async function readToken(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw err;
  }
}

async function createToken(workDir: string, file: string, log: Log): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await mkdir(workDir, { recursive: true });
  await writeFile(file, `${token}\n`, { mode: 0o600 });
  log.info({ file }, 'no token is configured: an admin token was made in this file');
  return token;
}
