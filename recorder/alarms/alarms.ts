// The alarms of a node: made of the events of its journal, kept beside the footage as lines that are only appended, so that a
// restart forgets neither an alarm nor who has taken note of it. The log of the shift is kept with them.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { DAY_MS, MINUTE_MS } from '../../base/units.ts';
import type { NodeEvent, EventReport as ToldEvent } from '../contract/event.ts';
import type { Happenings } from '../happenings/happenings.ts';
import { isLine, OF_NODE, withLine, type Alarm, type Line, type Note } from './alarm.ts';

interface Journal {
  after(id: number): Iterable<NodeEvent>;
  follow(listener: () => void): () => void;
  tell(told: ToldEvent): void;
}

interface AlarmsOptions {
  readonly journal: Journal;
  readonly lines: Pick<Happenings, 'add' | 'find' | 'cameras'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A shorter gap is in the list of gaps, and wakes nobody. */
const LEAST_MS = 10_000;
/** What comes again within this time of its end is the same alarm. */
const AGAIN_MS = 10 * MINUTE_MS;
/** Older lines are not read by the next process. */
const READ_MS = 31 * DAY_MS;
const MAX_LINES = 20_000;
const MAX_ALARMS = 1_000;
const MAX_NOTES = 1_000;
/** The loss of a node is told by each camera that was taken over. */
const NODE_LOST = 'node-lost';

/** Gaps that somebody wanted, or that say only how another thing went on. */
const EXPECTED_CAUSES: ReadonlySet<string> = new Set([
  'starting',
  'stopped',
  'moved',
  'unlicensed',
  'on-other-node',
  'on-disk-away',
  'on-node-away',
]);
/** Told by who did it. */
const EXPECTED_WARNINGS: ReadonlySet<string> = new Set(['camera-removed']);

/** What is used of the data of events. */
interface EventData {
  readonly cause?: string;
  readonly code?: string;
  readonly detail?: string;
  readonly start_ms?: number;
  readonly end_ms?: number;
  readonly node_lost?: boolean;
}

/** Of lines that are reported as events. */
type ShownType = Exclude<Line['type'], 'mailed' | 'escalated'>;

interface Report {
  readonly cameraId: string | undefined;
  readonly code: string;
  readonly message?: string | undefined;
  readonly atMs: number;
}

export class Alarms {
  readonly #options: AlarmsOptions;
  readonly #alarms = new Map<string, Alarm>();
  readonly #notes: Note[] = [];
  /** The newest lines, by id: after a restart, the journal tells again what happened within an hour. */
  readonly #known = new Set<string>();
  /** Gaps that are too short yet, by camera. */
  readonly #pending = new Map<string, Timer>();
  #readId = 0;
  #unfollow = (): void => {};

  constructor(options: AlarmsOptions) {
    this.#options = options;
  }

  /** Never rejects: if the disk cannot be read, alarms begin with what the journal has. */
  async start(): Promise<void> {
    const { lines, clock, log, journal } = this.#options;
    try {
      const cameraIds = await lines.cameras();
      const fromMs = clock.wallMs() - READ_MS;
      const found = await lines.find({ cameraIds, fromMs, toMs: Infinity, wants: isLine, limit: MAX_LINES });
      const inOrder = found
        .filter(isLine)
        .sort((a, b) => a.received_ms - b.received_ms || a.start_ms - b.start_ms || (a.id < b.id ? -1 : 1));
      for (const line of inOrder) this.#take(line);
    } catch (err) {
      log.warn({ err }, 'the alarms on the disk cannot be read');
    }
    this.#unfollow = journal.follow(() => this.#read());
    this.#read();
    this.#endForgotten();
  }

  close(): void {
    this.#unfollow();
    for (const timer of this.#pending.values()) timer.cancel();
    this.#pending.clear();
  }

  /** Newest first. */
  get list(): readonly Alarm[] {
    return [...this.#alarms.values()].sort((a, b) => b.startMs - a.startMs);
  }

  /** Newest first. */
  get notes(): readonly Note[] {
    return this.#notes.toReversed();
  }

  /** Resolves when it is on the disk; undefined if there is no such alarm. Rejects with HappeningError. */
  async acknowledge(id: string, by: string, note: string | undefined): Promise<Alarm | undefined> {
    const alarm = this.#alarms.get(id);
    if (!alarm) return undefined;
    const atMs = this.#options.clock.wallMs();
    const line = this.#line('acknowledged', `${id}/${atMs}`, { ...alarm, atMs, by }, { alarm: id, note });
    await this.#options.lines.add([line]);
    this.#show(line);
    return this.#alarms.get(id);
  }

  /** Resolves when it is on the disk. Rejects with HappeningError. */
  async write(by: string, note: string): Promise<Note> {
    const atMs = this.#options.clock.wallMs();
    const line = this.#line('noted', `note-${atMs}-${this.#notes.length}`, { cameraId: undefined, atMs, by }, { note });
    await this.#options.lines.add([line]);
    this.#show(line);
    return this.#notes.at(-1) as Note;
  }

  /** Notes that alarms were mailed. */
  mark(type: 'mailed' | 'escalated', alarms: readonly Alarm[]): void {
    const atMs = this.#options.clock.wallMs();
    const lines = alarms.map(({ id, cameraId }) =>
      this.#line(type, `${id}/${type}`, { cameraId, atMs }, { alarm: id }),
    );
    for (const line of lines) this.#take(line);
    this.#keep(lines);
  }

  #read(): void {
    for (const event of this.#options.journal.after(this.#readId)) {
      this.#readId = event.id;
      this.#hear(event);
    }
  }

  #hear({ id, type, cameraIds, timeMs, json }: NodeEvent): void {
    const [cameraId] = cameraIds;
    const { data } = JSON.parse(json) as { readonly data: EventData };
    const code = data.cause ?? data.code ?? '';
    const startMs = Number(data.start_ms);
    if (type === 'warning.raised' && !EXPECTED_WARNINGS.has(code)) {
      this.#raise(String(id), { cameraId, code, message: data.detail ?? '', atMs: timeMs });
    } else if (type === 'warning.cleared') this.#end(`${id}/ended`, { cameraId, code, atMs: timeMs });
    else if (type === 'camera.taken' && data.node_lost === true) {
      this.#raise(String(id), { cameraId: undefined, code: NODE_LOST, atMs: timeMs });
      this.#end(`${id}/ended`, { cameraId: undefined, code: NODE_LOST, atMs: timeMs });
    } else if (type === 'gap.opened' && cameraId !== undefined && !EXPECTED_CAUSES.has(code)) {
      this.#cancel(cameraId);
      const leftMs = Math.max(0, startMs + LEAST_MS - this.#options.clock.wallMs());
      const raise = (): void => this.#raise(String(id), { cameraId, code, atMs: startMs });
      this.#pending.set(cameraId, this.#options.clock.after(leftMs, raise));
    } else if (type === 'gap.closed' && cameraId !== undefined) {
      this.#cancel(cameraId);
      const atMs = Number(data.end_ms);
      const isLong = atMs - startMs >= LEAST_MS && !EXPECTED_CAUSES.has(code);
      if (isLong && !this.#openOf(cameraId).some(isOfGap)) this.#raise(String(id), { cameraId, code, atMs: startMs });
      const [open] = this.#openOf(cameraId).filter(isOfGap);
      if (open) this.#end(`${id}/ended`, { cameraId, code: open.code, atMs });
    }
  }

  #openOf(cameraId: string | undefined): readonly Alarm[] {
    return this.list.filter((alarm) => alarm.cameraId === cameraId && alarm.endMs === undefined);
  }

  /** What began before the journal does may have ended meanwhile: if it lasts, it is told again. */
  #endForgotten(): void {
    const atMs = this.#options.clock.wallMs();
    const lasting = new Set<string>();
    for (const { type, cameraIds, json } of this.#options.journal.after(0)) {
      const { data } = JSON.parse(json) as { readonly data: EventData };
      const key = `${cameraIds[0] ?? ''} ${data.code ?? ''}`;
      if (type === 'gap.opened' || type === 'warning.raised') lasting.add(key);
      if (type === 'gap.closed' || type === 'warning.cleared') lasting.delete(key);
    }
    for (const alarm of this.list) {
      const key = `${alarm.cameraId ?? ''} ${isOfGap(alarm) ? '' : alarm.code}`;
      if (alarm.endMs === undefined && !lasting.has(key)) this.#end(`${alarm.id}/start/${atMs}`, { ...alarm, atMs });
    }
  }

  #cancel(cameraId: string): void {
    this.#pending.get(cameraId)?.cancel();
    this.#pending.delete(cameraId);
  }

  #raise(id: string, { cameraId, code, message, atMs }: Report): void {
    const before = this.list.find((alarm) => alarm.cameraId === cameraId && alarm.code === code);
    // It lasts, or the journal tells again what is known.
    if (before && (before.endMs === undefined || atMs < before.endMs)) return;
    const isAgain = before?.endMs !== undefined && atMs - before.endMs < AGAIN_MS;
    this.#tell(
      isAgain
        ? this.#line('again', id, { cameraId, atMs }, { alarm: before.id })
        : this.#line('raised', id, { cameraId, atMs }, { code, ...(message !== undefined && { message }) }),
    );
  }

  #end(id: string, { cameraId, code, atMs }: Report): void {
    const alarm = this.#openOf(cameraId).find((one) => one.code === code);
    if (alarm) this.#tell(this.#line('ended', id, { cameraId, atMs }, { alarm: alarm.id }));
  }

  #line(
    type: Line['type'],
    id: string,
    { cameraId, atMs, by = '' }: { readonly cameraId: string | undefined; readonly atMs: number; readonly by?: string },
    data: Line['data'] | { readonly note: string | undefined },
  ): Line {
    return {
      camera_id: cameraId ?? OF_NODE,
      id,
      source: 'alarms',
      type,
      start_ms: Math.round(atMs),
      end_ms: null,
      reported_by: by,
      received_ms: Math.round(this.#options.clock.wallMs()),
      data: data as Line['data'],
    };
  }

  /** Known at once, also if the disk hangs; a line that is lost is told again by the journal of the last hour. */
  #tell(line: Line): void {
    if (this.#show(line)) this.#keep([line]);
  }

  #keep(kept: readonly Line[]): void {
    const { lines, log } = this.#options;
    lines.add(kept).catch((err: unknown) => log.debug({ err }, 'lines of the alarms cannot be written'));
  }

  /** Takes a line, and reports it to who follows the events; false for a line that is known. */
  #show(line: Line): boolean {
    if (!this.#take(line)) return false;
    const { type, data, reported_by: by } = line;
    const { code } = this.#alarms.get(data.alarm ?? line.id) ?? {};
    this.#options.journal.tell({
      type: `alarm.${type as ShownType}`,
      cameraId: line.camera_id === OF_NODE ? undefined : line.camera_id,
      data: { alarm_id: data.alarm ?? line.id, code: code ?? null, by: by || null, note: data.note ?? null },
    });
    return true;
  }

  /** False for a line that is known. */
  #take(line: Line): boolean {
    if (this.#known.has(line.id)) return false;
    this.#known.add(line.id);
    if (this.#known.size > MAX_LINES) this.#known.delete(this.#known.values().next().value as string);
    if (line.type === 'noted') {
      this.#notes.push({ id: line.id, by: line.reported_by, atMs: line.start_ms, note: line.data.note ?? '' });
      if (this.#notes.length > MAX_NOTES) this.#notes.shift();
    } else {
      const id = line.data.alarm ?? line.id;
      const alarm = withLine(this.#alarms.get(id), line);
      if (alarm) this.#alarms.set(id, alarm);
      if (this.#alarms.size > MAX_ALARMS) this.#forget();
    }
    return true;
  }

  /** The oldest one that is over, or the oldest. */
  #forget(): void {
    const oldestFirst = this.list.toReversed();
    const gone = oldestFirst.find(({ endMs }) => endMs !== undefined) ?? oldestFirst[0];
    if (gone) this.#alarms.delete(gone.id);
  }
}

/** Warnings have words. */
const isOfGap = ({ message, code }: Alarm): boolean => message === undefined && code !== NODE_LOST;
