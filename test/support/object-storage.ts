// Object storage for tests: versitygw on a directory, with versions and object lock.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { NO_BODY, signed } from '../../recorder/copies/sign.ts';
import { findProgram } from '../cluster/programs.ts';
import { Child } from './child.ts';
import { freePorts } from './recorder-process.ts';
import { until } from './until.ts';

/** Why tests that need it are left out; false when they are not. */
export const storageMissing = (): string | false =>
  findProgram('versitygw') === undefined ? 'versitygw is not installed: hack/setup s3 brings it' : false;

export const KEY = { accessKeyId: 'copier', secretAccessKey: 'secret of the copier', region: 'us-east-1' };

export class ObjectStorage {
  readonly endpoint: string;
  readonly #root: string;
  readonly #listen: string;
  #child: Child;

  private constructor(root: string, listen: string) {
    this.#root = root;
    this.#listen = listen;
    this.endpoint = `http://${listen}`;
    this.#child = this.#run();
  }

  /** With a bucket `footage`, and one with object lock, `locked`. Ends with the test. */
  static async start(
    t: { after(end: () => Promise<void>): void },
    directory: string,
    host = '127.0.0.1',
  ): Promise<ObjectStorage> {
    for (const name of ['buckets', 'versions']) mkdirSync(join(directory, name), { recursive: true });
    const [port = 0] = await freePorts(1);
    const storage = new ObjectStorage(directory, `${host}:${port}`);
    t.after(() => storage.stop());
    await until('the storage makes a bucket', () => storage.#makeBucket('footage', {}));
    await storage.#makeBucket('locked', { 'x-amz-bucket-object-lock-enabled': 'true' });
    return storage;
  }

  /** A target in `archive.targets`. */
  target(changes: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
    return { ...KEY, name: 'offsite', endpoint: this.endpoint, bucket: 'footage', prefix: 'site', ...changes };
  }

  async stop(): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }

  restart(): void {
    this.#child = this.#run();
  }

  /** Where the objects of a bucket are files. */
  directory(bucket = 'footage', prefix = 'site'): string {
    return join(this.#root, 'buckets', bucket, prefix);
  }

  #run(): Child {
    const [buckets, versions] = ['buckets', 'versions'].map((name) => join(this.#root, name)) as [string, string];
    const { accessKeyId: access, secretAccessKey: secret } = KEY;
    const args = ['--access', access, '--secret', secret, '--port', this.#listen, '--quiet'];
    return new Child(findProgram('versitygw')!, [...args, 'posix', '--versioning-dir', versions, buckets]);
  }

  async #makeBucket(name: string, headers: Readonly<Record<string, string>>): Promise<boolean> {
    const url = new URL(`${this.endpoint}/${name}`);
    const asked = { method: 'PUT', url, headers, sha256: NO_BODY, timeMs: Date.now() } as const;
    const answer = await request(url, { method: 'PUT', headers: signed(asked, KEY) });
    await answer.body.dump();
    return answer.statusCode === 200;
  }
}
