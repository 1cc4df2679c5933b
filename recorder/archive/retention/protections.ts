// Footage that a user wants kept: windows of cameras that retention never removes. They are stored with the footage, in
// `.kube-nvr/protections.json`, so that they move to another node with the disk.

import type { Interval } from '../../../base/interval.ts';
import { randomUUID } from 'node:crypto';
import type { FileSystem } from '../disk/file-system.ts';
import { isFootageId } from '../../../base/camera-id.ts';
import { readIfThere, replaceFile } from '../disk/state-file.ts';
import { ProtectionError, type NewProtection, type Protection } from '../../contract/protection.ts';
import { Turns } from '../../../base/turns.ts';
import { parseJson } from '../../../base/parse-json.ts';

/** Every segment that might be removed is compared with each of them. */
const MAX_PROTECTIONS = 10_000;
/** Of one token, so that no user can take all of them. */
export const MAX_PROTECTIONS_OF_ONE = 1_000;
const VERSION = 1;

export class Protections {
  readonly #fs: FileSystem;
  readonly #path: string;
  readonly #checkDisk: () => Promise<void>;
  #all: readonly Protection[] = [];
  /** By camera: sorted, and they do not touch. */
  #spans = new Map<string, Interval[]>();
  #readable = false;
  /** Writes are done one after another. */
  readonly #changes = new Turns(1);
  changed: (cameraId: string) => void = () => {};

  /** `checkDisk` throws when the archive's disk has been replaced by another. */
  constructor(fs: FileSystem, path: string, checkDisk: () => Promise<void> = async () => {}) {
    this.#fs = fs;
    this.#path = path;
    this.#checkDisk = checkDisk;
  }

  /** False until they were read, and when they cannot be read: then nothing may be removed. */
  get readable(): boolean {
    return this.#readable;
  }

  list(cameraId?: string): readonly Protection[] {
    return cameraId === undefined ? this.#all : this.#all.filter((one) => one.cameraId === cameraId);
  }

  cameras(): Iterable<string> {
    return this.#spans.keys();
  }

  /** The protected time of a camera. */
  spans(cameraId: string): readonly Interval[] {
    return this.#spans.get(cameraId) ?? [];
  }

  /** Whether any of [startMs, endMs), or the instant where they are the same, is protected. */
  covers(cameraId: string, startMs: number, endMs: number): boolean {
    const end = Math.max(endMs, startMs + 1);
    return this.spans(cameraId).some(({ fromMs, toMs }) => fromMs < end && toMs > startMs);
  }

  /** Reads what earlier runs stored. Throws ProtectionError when the file is damaged, or the system's error. */
  async load(): Promise<void> {
    this.#readable = false;
    const text = await readIfThere(this.#fs, this.#path);
    if (text !== undefined) {
      const all = parseProtections(text);
      if (!all) throw new ProtectionError('protections-unreadable', `${this.#path} is damaged`);
      this.#set(all);
    }
    this.#readable = true;
  }

  add(window: NewProtection, nowMs: number): Promise<Protection> {
    const protection: Protection = { ...window, id: randomUUID(), createdMs: nowMs };
    const { by } = protection;
    return this.#change([protection.cameraId], (all) => {
      if (all.length >= MAX_PROTECTIONS) {
        throw new ProtectionError('too-many-protections', `${MAX_PROTECTIONS} windows are protected already`);
      }
      if (by !== undefined && all.filter((one) => one.by === by).length >= MAX_PROTECTIONS_OF_ONE) {
        throw new ProtectionError('too-many-protections', `${by} protects ${MAX_PROTECTIONS_OF_ONE} windows already`);
      }
      return { all: [...all, protection], result: protection, before: true };
    });
  }

  remove(id: string): Promise<Protection | undefined> {
    const found = this.#all.find((one) => one.id === id);
    return this.#change(found ? [found.cameraId] : [], (all) => ({
      all: all.filter((one) => one.id !== id),
      result: all.find((one) => one.id === id),
      before: false,
    }));
  }

  /** Removes the protections whose time is over. When the file cannot be written, it rejects, and they stay. */
  async expire(nowMs: number): Promise<void> {
    const isOver = ({ untilMs }: Protection): boolean => untilMs !== undefined && untilMs <= nowMs;
    const over = this.#all.filter(isOver);
    if (over.length === 0) return;
    const cameraIds = [...new Set(over.map(({ cameraId }) => cameraId))];
    await this.#change(cameraIds, (all) => ({
      all: all.filter((one) => !isOver(one)),
      result: undefined,
      before: false,
    }));
  }

  /** With `before`, the change is effective before it is on the disk, as an addition must be; otherwise afterwards. */
  #change<T>(
    cameraIds: readonly string[],
    change: (all: readonly Protection[]) => { all: readonly Protection[]; result: T; before: boolean },
  ): Promise<T> {
    return this.#changes.take(async () => {
      if (!this.#readable) {
        throw new ProtectionError('protections-unreadable', 'the list of protected footage cannot be read');
      }
      const old = this.#all;
      const { all, result, before } = change(old);
      if (before) this.#set(all);
      try {
        await this.#checkDisk();
        await replaceFile(this.#fs, this.#path, formatProtections(all));
      } catch (err) {
        this.#set(old);
        throw err;
      } finally {
        if (before) for (const cameraId of cameraIds) this.changed(cameraId);
      }
      this.#set(all);
      if (!before) for (const cameraId of cameraIds) this.changed(cameraId);
      return result;
    });
  }

  #set(all: readonly Protection[]): void {
    this.#all = all.toSorted((a, b) =>
      a.cameraId < b.cameraId ? -1 : a.cameraId > b.cameraId ? 1 : a.fromMs - b.fromMs,
    );
    this.#spans = new Map();
    for (const { cameraId, fromMs, toMs } of this.#all) {
      const spans = this.#spans.get(cameraId) ?? [];
      this.#spans.set(cameraId, spans);
      const last = spans.at(-1);
      if (last && fromMs <= last.toMs) spans[spans.length - 1] = { ...last, toMs: Math.max(last.toMs, toMs) };
      else spans.push({ fromMs, toMs });
    }
  }
}

export function formatProtections(all: readonly Protection[]): string {
  return `${JSON.stringify({ version: VERSION, protections: all }, undefined, 1)}\n`;
}

/** Undefined for anything but what `formatProtections` writes: a part of the list would protect less than was asked for. */
export function parseProtections(text: string): readonly Protection[] | undefined {
  const value = parseJson(text) as { version?: unknown; protections?: unknown } | null | undefined;
  if (value?.version !== VERSION || !Array.isArray(value.protections)) return undefined;
  const all = (value.protections as unknown[]).map(parseProtection);
  return all.every((one) => one !== undefined) ? all : undefined;
}

function parseProtection(value: unknown): Protection | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { id, cameraId, fromMs, toMs, createdMs, note, untilMs, by } = value as Record<string, unknown>;
  if (typeof id !== 'string' || typeof cameraId !== 'string' || !isFootageId(cameraId)) return undefined;
  if (!isTime(fromMs) || !isTime(toMs) || !isTime(createdMs)) return undefined;
  if (untilMs !== undefined && !isTime(untilMs)) return undefined;
  const textOf = (text: unknown): string | undefined => (typeof text === 'string' ? text : undefined);
  return { id, cameraId, fromMs, toMs, createdMs, note: textOf(note), untilMs, by: textOf(by) };
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
