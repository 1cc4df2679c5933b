// The table `cameras` as a cluster reads it: the rows of all nodes, and the marks by which a restored table is recognised
// (docs/design/rows-as-cameras.md).

import { CAMERA_COLUMNS, rowIn, type CameraRow } from './camera-rows.ts';
import type { Connection } from './connection.ts';

/** Both methods reject with DatabaseError while the table cannot be used. */
export interface RowTable {
  /** The rows of all nodes, and a mark of each cluster that uses the table. */
  allRows(): Promise<{ readonly rows: readonly CameraRow[]; readonly marks: readonly string[] }>;
  /** `before`: the marks that it replaces. */
  setMark(mark: string, before: readonly string[]): Promise<void>;
}

/** Its tables exist once a recorder has used the database. */
export class PostgresRows implements RowTable {
  readonly #connection: Pick<Connection, 'transaction'>;

  constructor(connection: Pick<Connection, 'transaction'>) {
    this.#connection = connection;
  }

  allRows(): ReturnType<RowTable['allRows']> {
    return this.#connection.transaction(async (run) => {
      await run('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const rows = await run<Parameters<typeof rowIn>[0]>(`SELECT ${CAMERA_COLUMNS} FROM cameras ORDER BY id`);
      const marks = await run<{ mark: string }>('SELECT mark FROM kube_nvr_rows ORDER BY mark');
      return { rows: rows.map(rowIn), marks: marks.map(({ mark }) => mark) };
    });
  }

  setMark(mark: string, before: readonly string[]): Promise<void> {
    return this.#connection.transaction(async (run) => {
      await run('DELETE FROM kube_nvr_rows WHERE mark = ANY($1)', [before]);
      await run('INSERT INTO kube_nvr_rows (mark) VALUES ($1)', [mark]);
    });
  }
}
