// The table `cameras` of the database that a Secret names: read again whenever the table cannot be used, because a password may have
// been replaced.

import { silentLog } from '../../base/log.ts';
import { Connection } from '../../recorder/database/connection.ts';
import { PostgresRows, type RowTable } from '../../recorder/database/row-table.ts';
import type { KubeApi, ObjectName } from '../kube/api.ts';
import { textIn } from '../controllers/pool-secret.ts';
import { SECRET } from '../kube/resources.ts';

interface SecretTableOptions {
  readonly api: Pick<KubeApi, 'get'>;
  /** Its key `url` is the address of the database. */
  readonly secret: ObjectName;
}

export class SecretTable implements RowTable {
  readonly #options: SecretTableOptions;
  #connection: Connection | undefined;

  constructor(options: SecretTableOptions) {
    this.#options = options;
  }

  allRows(): ReturnType<RowTable['allRows']> {
    return this.#use((rows) => rows.allRows());
  }

  setMark(mark: string, before: readonly string[]): Promise<void> {
    return this.#use((rows) => rows.setMark(mark, before));
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.close();
  }

  async #use<T>(work: (rows: RowTable) => Promise<T>): Promise<T> {
    this.#connection ??= await this.#connect();
    try {
      return await work(new PostgresRows(this.#connection));
    } catch (err) {
      await this.close();
      throw err;
    }
  }

  async #connect(): Promise<Connection> {
    const { api, secret } = this.#options;
    const url = textIn(await api.get(SECRET, secret), 'url');
    if (url === undefined) throw new Error(`the Secret ${secret.name} has no key url`);
    // Why the table cannot be used is said by its reader.
    return new Connection({ url, nodeName: 'operator', log: silentLog });
  }
}
