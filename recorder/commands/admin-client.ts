// Calls the API of a recorder from a command, as an admin: by default the recorder of this machine, with the certificate of its member of a
// cluster of servers, or with its own admin token.

import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { errorCode, messageOf } from '../../base/error.ts';
import { answerTo, shortRequest } from '../../base/short-request.ts';
import { nodeIdentity } from '../../crds/names.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import { nodeFiles } from '../certificates/node-files.ts';
import type { Config } from '../config/schema.ts';
import { formatListen, type ListenAddress } from '../config/values.ts';
import { memberTls } from '../peers/identity.ts';
import { CALLER_HEADER } from '../peers/peer-requests.ts';
import { servedCertificate } from '../front/trust.ts';
import { CommandError, CONFIG_OPTION, UsageError } from './command.ts';

const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** For `parseArgs`, and in the usage of each command that has them. */
export const ADMIN_OPTIONS = {
  ...CONFIG_OPTION,
  server: { type: 'string' },
  'token-file': { type: 'string' },
  ca: { type: 'string' },
} as const;
export const ADMIN_USAGE = `  --server URL       the recorder to ask (default: that of this machine, by its configuration)
  --token-file FILE  a file with the token of an admin (not needed on a server of a cluster, for its own recorder)
  --ca FILE          the authority of the server's certificate, in PEM
  --config FILE      configuration of the recorder (default /etc/recorder/config.yaml)
`;

export interface AdminOptions {
  readonly server?: string | undefined;
  readonly 'token-file'?: string | undefined;
  readonly ca?: string | undefined;
  readonly config: string;
}

/** The recorder refused, or cannot be asked; the message is for people. */
export class AdminError extends CommandError {
  override readonly name = 'AdminError';
}

const Refusal = z.object({ detail: z.string() });

export class AdminClient {
  readonly #server: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #tls: object;

  /** `server` ends with a slash if it has a path. */
  constructor(server: URL, headers: Readonly<Record<string, string>>, tls: object) {
    this.#server = server;
    this.#headers = headers;
    this.#tls = tls;
  }

  /** Throws UsageError, and what `load` throws. */
  static async open(options: AdminOptions, load: (file: string) => Promise<Config>): Promise<AdminClient> {
    const { server, 'token-file': file, ca } = options;
    const needsConfig = server === undefined || file === undefined;
    const config = needsConfig ? await load(options.config) : undefined;
    const { mode, listen } = config?.cluster ?? {};
    if (config && mode === 'etcd' && listen && server === undefined && file === undefined) {
      return AdminClient.#ofMember(config, listen);
    }
    const url = server ?? localAddress(config as Config);
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new UsageError('--server: expected an address such as https://rack-1:9997');
    }
    const token =
      file === undefined ? await ownToken((config as Config).workDir) : (await readNamed('--token-file', file)).trim();
    const tls =
      ca !== undefined
        ? { ca: await readNamed('--ca', ca) }
        : server === undefined
          ? await ownTrust(config as Config)
          : {};
    return new AdminClient(new URL(url), token === undefined ? {} : { authorization: `Bearer ${token}` }, tls);
  }

  /** Throws UsageError. */
  static async #ofMember({ nodeName, cluster }: Config, listen: ListenAddress): Promise<AdminClient> {
    const files = nodeFiles(cluster.dataDir, nodeName);
    const read = (file: string): Promise<string> => readNamed('cluster.dataDir', file);
    const [certificate, key, ca] = await Promise.all([
      read(files.certificate),
      read(files.key),
      read(files.authorities),
    ]);
    const tls = memberTls({ certificate, key, ca }, nodeIdentity(STORE_NAMESPACE, cluster.pool, nodeName));
    const statement = { name: `command on ${nodeName}`, cameras: [], may: 'everything' };
    const headers = { [CALLER_HEADER]: Buffer.from(JSON.stringify(statement)).toString('base64url') };
    return new AdminClient(new URL(`https://${localHost(listen)}/listener/api/`), headers, tls);
  }

  /** For requests whose answer is long or a stream. */
  target(path: string): {
    readonly url: URL;
    readonly headers: Readonly<Record<string, string>>;
    readonly tls: object;
  } {
    return { url: new URL(path.slice(1), this.#server), headers: this.#headers, tls: this.#tls };
  }

  /** Writes the body of an answer to a file that does not exist yet. Throws AdminError. */
  async save(path: string, file: string): Promise<void> {
    const { url, headers, tls } = this.target(path);
    try {
      const answer = await answerTo(url, { headers, tls });
      if (answer.statusCode !== 200) {
        answer.destroy();
        throw new AdminError(`it answered ${answer.statusCode}`);
      }
      const out = await open(file, 'wx', 0o640).catch((err: unknown) => {
        answer.destroy();
        throw err;
      });
      await pipeline(answer, out.createWriteStream()).catch(async (err: unknown) => {
        // Half a movie looks like one, and would be in the way of the next try.
        await rm(file, { force: true });
        throw err;
      });
    } catch (cause) {
      if (cause instanceof AdminError) throw cause;
      throw new AdminError(`${file} cannot be written: ${errorCode(cause) ?? messageOf(cause)}`, { cause });
    }
  }

  /** The value of the answer. Throws AdminError. */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    let answer;
    try {
      answer = await shortRequest(new URL(path.slice(1), this.#server), {
        method,
        headers: this.#headers,
        body,
        tls: this.#tls,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_ANSWER_BYTES,
      });
    } catch (cause) {
      throw new AdminError(`${this.#server.origin} cannot be asked: ${errorCode(cause) ?? messageOf(cause)}`, {
        cause,
      });
    }
    const { status, value } = answer;
    if (status < 300) return value;
    const said = Refusal.safeParse(value).data?.detail ?? `it answered ${status}`;
    throw new AdminError(
      status === 401
        ? `${said}: give the token of an admin with --token-file`
        : status === 404 && said.startsWith(`there is no ${method} `)
          ? `${this.#server.origin} is not a recorder of a cluster of servers (cluster.mode: etcd)`
          : said,
    );
  }
}

/** A server need not be able to resolve its own name. */
const localAddress = ({ tls, listen }: Config): string => `${tls ? 'https' : 'http'}://${localHost(listen)}`;

const localHost = (listen: ListenAddress): string => {
  const host = listen.host === '0.0.0.0' ? '127.0.0.1' : listen.host === '::' ? '::1' : listen.host;
  return formatListen({ ...listen, host });
};

/** Undefined if there is none: the recorder says whether it needs one. */
async function ownToken(workDir: string): Promise<string | undefined> {
  const file = join(workDir, 'admin.token');
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (err) {
    if (errorCode(err) === 'ENOENT') return undefined;
    throw new UsageError(`${file} cannot be read (${errorCode(err)}): run this as root, or give --token-file`);
  }
}

/** The certificate of this machine's recorder itself: its names need not include the address that is used here. */
async function ownTrust(config: Config): Promise<object> {
  const file = servedCertificate(config);
  if (file === undefined) return {};
  return {
    ca: await readNamed('tls.certificate', file),
    allowPartialTrustChain: true,
    checkServerIdentity: () => undefined,
  };
}

export async function readNamed(name: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (err) {
    throw new UsageError(`${name}: ${file} cannot be read (${errorCode(err)})`, { cause: err });
  }
}
