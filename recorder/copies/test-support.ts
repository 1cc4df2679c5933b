// Object storage in this process that keeps objects in memory, verifies signatures and digests, and misbehaves as it is told.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { systemClock, VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { Archive } from '../archive/archive.ts';
import { bench, runOf, segmentPaths, temporaryDirectory } from '../archive/test-support.ts';
import { ArchiveFiles } from '../footage/archive-file.ts';
import { accountReader } from '../run/copies.ts';
import type { CopiedArchive } from './copied-archive.ts';
import { Copies, type ConfiguredCopies, type ConfiguredTarget } from './copies.ts';
import { signed } from './sign.ts';

export const KEY = { accessKeyId: 'copier', secretAccessKey: 'secret of the copier', region: 'us-east-1' };

/** What a request meets instead of an answer. */
export type Fault = 'busy' | 'half' | 'other-bytes' | 'full' | 'no-digest' | 'locked' | 'no-list';

const SKEW_MS = 15 * 60_000;

export class FakeS3 {
  readonly objects = new Map<string, Buffer>();
  /** Headers of the request that stored an object. */
  readonly headers = new Map<string, IncomingMessage['headers']>();
  /** Method and key of each request. */
  readonly requests: string[] = [];
  bucket = 'footage';
  secret = KEY.secretAccessKey;
  /** Its clock minus that of the machine. */
  aheadMs = 0;
  fault: (method: string, key: string) => Fault | undefined = () => undefined;
  /** Called before a request is answered. */
  before: (method: string, key: string) => Promise<void> = async () => {};
  endpoint = '';

  static async start(t: TestContext): Promise<FakeS3> {
    const fake = new FakeS3();
    const server = createServer(
      (request, response) => void fake.#answer(request, response).catch(() => request.destroy()),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    fake.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return fake;
  }

  /** Keys of files, in order. */
  get files(): string[] {
    return [...this.objects.keys()].filter((key) => key.endsWith('.mp4')).sort();
  }

  /** Keys of files of accounts, in order. */
  get accounts(): string[] {
    return [...this.objects.keys()].filter((key) => key.includes('/.kube-nvr/accounts/')).sort();
  }

  /** Keys of marks, in order. */
  get marks(): string[] {
    return [...this.objects.keys()].filter((key) => key.includes('/.kube-nvr/copies/')).sort();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '' } = request;
    const url = new URL(request.url ?? '', this.endpoint);
    const [, bucket = '', ...rest] = url.pathname.split('/').map(decodeURIComponent);
    const key = rest.join('/');
    this.requests.push(`${method} ${key || url.searchParams.get('prefix')}`);
    await this.before(method, key);
    response.setHeader('date', new Date(Date.now() + this.aheadMs).toUTCString());
    const fault = this.fault(method, key);
    if (fault === 'busy') return refuse(response, 503, 'SlowDown');
    if (fault === 'locked') return refuse(response, 403, 'AccessDenied');
    const wrong = this.#refusalOf(request, url);
    if (wrong) return refuse(response, 403, wrong);
    if (bucket !== this.bucket) return refuse(response, 404, 'NoSuchBucket');
    const object = this.objects.get(key);
    if (method === 'PUT') return this.#put(request, response, key, fault);
    if (method === 'DELETE') {
      this.objects.delete(key);
      return void response.writeHead(204).end();
    }
    if (key === '') {
      const list =
        fault === 'no-list' ? `<ListBucketResult>${'<Contents>'.repeat(40_000)}` : this.#list(url.searchParams);
      return void response.end(list);
    }
    if (!object) return refuse(response, 404, 'NoSuchKey');
    response.setHeader('x-amz-checksum-sha256', sha256(object));
    if (fault === 'no-digest') response.removeHeader('x-amz-checksum-sha256');
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const body = range ? object.subarray(Number(range[1]), Number(range[2]) + 1) : object;
    response.writeHead(range ? 206 : 200, { 'content-length': body.length });
    if (fault !== 'half') return void response.end(method === 'HEAD' ? undefined : body);
    response.write(body.subarray(0, body.length / 2), () => response.destroy());
  }

  #refusalOf(request: IncomingMessage, url: URL): string | undefined {
    const { authorization = '', ...all } = request.headers;
    const names = /SignedHeaders=([^,]*)/.exec(authorization)?.[1]?.split(';') ?? [];
    const time = String(all['x-amz-date'] ?? '');
    const timeMs = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
    if (Math.abs(timeMs - Date.now() - this.aheadMs) > SKEW_MS) return 'RequestTimeTooSkewed';
    const headers = Object.fromEntries(
      names.filter((name) => name !== 'host').map((name) => [name, String(all[name])]),
    );
    const sent = { method: request.method ?? '', url, headers, sha256: String(all['x-amz-content-sha256']), timeMs };
    const expected = signed(sent, { ...KEY, secretAccessKey: this.secret });
    return authorization === expected.authorization ? undefined : 'SignatureDoesNotMatch';
  }

  async #put(request: IncomingMessage, response: ServerResponse, key: string, fault: Fault | undefined): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) {
      chunks.push(chunk as Buffer);
      if (fault === 'half') return void request.destroy();
    }
    if (fault === 'full') return refuse(response, 507, 'XMinioStorageFull');
    if (request.headers['if-none-match'] === '*' && this.objects.has(key))
      return refuse(response, 412, 'PreconditionFailed');
    const body = Buffer.concat(chunks);
    if (sha256(body) !== request.headers['x-amz-checksum-sha256']) return refuse(response, 400, 'BadDigest');
    const stored = fault === 'other-bytes' ? Buffer.from('other bytes') : body;
    this.objects.set(key, stored);
    this.headers.set(key, request.headers);
    if (fault !== 'no-digest') response.setHeader('x-amz-checksum-sha256', sha256(stored));
    response.end();
  }

  /** Pages of three entries, so that every list has several. */
  #list(query: URLSearchParams): string {
    const [prefix, delimiter, after] = ['prefix', 'delimiter', 'continuation-token'].map(
      (name) => query.get(name) ?? '',
    );
    const entries = new Map<string, string>();
    for (const key of [...this.objects.keys()].sort()) {
      if (!key.startsWith(prefix ?? '')) continue;
      const cut = delimiter ? key.indexOf(delimiter, prefix?.length) : -1;
      const folder = key.slice(0, cut + 1);
      const size = this.objects.get(key)?.length;
      if (cut >= 0) entries.set(folder, `<CommonPrefixes><Prefix>${folder}</Prefix></CommonPrefixes>`);
      else entries.set(key, `<Contents><Key>${key.replaceAll('&', '&amp;')}</Key><Size>${size}</Size></Contents>`);
    }
    const rest = [...entries].filter(([name]) => name > (after ?? ''));
    const page = rest.slice(0, 3);
    const next = rest.length > 3 ? `<NextContinuationToken>${page.at(-1)?.[0]}</NextContinuationToken>` : '';
    const xml = page.map(([, entry]) => entry).join('');
    return `<ListBucketResult><IsTruncated>${rest.length > 3}</IsTruncated>${next}${xml}</ListBucketResult>`;
  }
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('base64');

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status).end(`<Error><Code>${code}</Code><Message>as the test wants</Message></Error>`);
}

/** An archive at rest with some files of the camera `gate`, and what copies them. */
export interface Copied {
  readonly root: string;
  readonly archive: Archive;
  readonly paths: readonly string[];
  readonly config: ConfiguredTarget;
  /** Changes of what the archive tells the copier. */
  readonly told: { -readonly [K in keyof CopiedArchive]?: CopiedArchive[K] };
  /** Begins to copy; ends with the test. */
  readonly copy: (
    config?: Partial<ConfiguredTarget>,
    rule?: { -readonly [K in keyof ConfiguredCopies]?: ConfiguredCopies[K] },
  ) => Promise<Copies>;
}

export const START_MS = Date.UTC(2026, 0, 1, 12);

/** The account of a node: paths by names. */
export const accountOf = (
  node: string,
  archive: string,
  files: Readonly<Record<string, string>>,
): CopiedArchive['account'] => ({
  node,
  archiveId: () => archive,
  files: async () => new Map(Object.entries(files)),
  ...accountReader,
});

export async function copied(t: TestContext, s3: FakeS3, seconds = 35): Promise<Copied> {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock(START_MS);
  const { archive, recording, camera, fs } = await bench({ root, clock });
  camera.begin(runOf());
  await camera.play(seconds, fs);
  camera.end();
  await recording.close();
  await archive.catalogue.refresh();
  const config = { ...KEY, name: 'offsite', endpoint: s3.endpoint, bucket: 'footage', prefix: 'site/' };
  const told: Copied['told'] = {};
  const asked: CopiedArchive = {
    owner: () => 'this archive',
    days: () => archive.catalogue.days(),
    openPaths: () => new Set(),
    isBehind: () => false,
    wantedMs: () => undefined,
    isProtected: () => false,
    receive: (...asked) => archive.receive(...asked),
    account: accountOf('rack-1', 'archive-1', {}),
  };
  return {
    root,
    archive,
    paths: segmentPaths(root),
    config,
    told,
    copy: async (changes, rule) => {
      const copies = await Copies.open({
        targets: [{ ...config, ...changes }],
        rules: () => [{ targets: ['offsite'], afterMs: 0, keepMs: undefined, ...rule }],
        archive: new Proxy(asked, { get: (own, name: keyof CopiedArchive) => told[name] ?? own[name] }),
        files: new ArchiveFiles(root),
        clock: systemClock,
        log: silentLog,
      });
      t.after(() => copies.close());
      copies.start();
      return copies;
    },
  };
}
