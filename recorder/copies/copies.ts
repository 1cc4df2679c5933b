// Copies of footage in object storage, as configured: one copier a target, and the targets as holders of footage.

import { readFile } from 'node:fs/promises';
import { inScope } from '../../base/camera-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { Reason, Warning } from '../../base/reason.ts';
import { HOUR_MS } from '../../base/units.ts';
import type { SegmentObserver } from '../archive/catalogue/observer.ts';
import type { ClosedSegment } from '../archive/catalogue/segment.ts';
import type { SegmentName } from '../archive/disk/names.ts';
import type { CopyPlaces } from '../contract/copy-places.ts';
import type { ArchiveFiles } from '../footage/archive-file.ts';
import type { Holder } from '../footage/holder.ts';
import type { CopiedArchive } from './copied-archive.ts';
import { Copier, type CopyRule } from './copier.ts';
import type { Hours } from './hours.ts';
import { S3Error } from './s3.ts';
import { targetHolder } from './target-holder.ts';
import { Target, type TargetConfig } from './target.ts';

/** A target as the configuration has it. */
export interface ConfiguredTarget extends Omit<TargetConfig, 'accessKey' | 'ca'> {
  readonly accessKeyId?: string | undefined;
  readonly accessKeyIdFile?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly secretAccessKeyFile?: string | undefined;
  /** A file. */
  readonly ca?: string | undefined;
  readonly maxBitrate?: number | undefined;
  readonly hours?: Hours | undefined;
}

/** The first rule for a camera counts. */
export interface ConfiguredCopies extends CopyRule {
  readonly targets: readonly string[];
  /** Undefined: for all cameras. */
  readonly cameras?: readonly string[] | undefined;
}

interface CopiesOptions {
  readonly targets: readonly ConfiguredTarget[];
  /** As of now. */
  readonly rules: () => readonly ConfiguredCopies[];
  readonly archive: CopiedArchive;
  readonly files: ArchiveFiles;
  readonly clock: Clock;
  readonly log: Log;
}

/** Longer is worth a warning, whatever the cause is. */
const BEHIND_MS = HOUR_MS;
const BEHIND = 'copies-behind';

export class Copies implements SegmentObserver, CopyPlaces {
  readonly copiers: readonly Copier[];
  readonly #holders: readonly { readonly target: Target; readonly holder: Holder }[];

  readonly #archive: CopiedArchive;
  readonly #ruleOf: (cameraId: string) => ConfiguredCopies | undefined;

  private constructor(targets: readonly Target[], { targets: configured, rules, ...deps }: CopiesOptions) {
    this.#archive = deps.archive;
    this.#ruleOf = (cameraId) => rules().find(({ cameras }) => !cameras || inScope(cameras, cameraId));
    const { account } = deps.archive;
    this.#holders = targets.map((target) => ({ target, holder: targetHolder(target, { ...deps, account }) }));
    this.copiers = targets.map((target, i) => {
      const ruleOf = (cameraId: string): CopyRule | undefined => {
        const rule = this.#ruleOf(cameraId);
        return rule?.targets.includes(target.name) ? rule : undefined;
      };
      const { maxBitrate, hours } = configured[i] as ConfiguredTarget;
      return new Copier({ ...deps, target, ruleOf, maxBitrate, hours });
    });
  }

  /** Rejects with the error of the system if the authorities of a target cannot be read. */
  static async open(options: CopiesOptions): Promise<Copies> {
    const targets = await Promise.all(options.targets.map((target) => openTarget(target, options.clock)));
    return new Copies(targets, options);
  }

  /** The targets as holders of footage. One that cannot have any is none: nothing would be away because of it. */
  get holders(): readonly Holder[] {
    return this.#holders.flatMap(({ target, holder }) => (target.hasNothing ? [] : holder));
  }

  start(): void {
    for (const copier of this.copiers) copier.start();
  }

  async close(): Promise<void> {
    await Promise.all(this.copiers.map((copier) => copier.close()));
  }

  closed(segment: ClosedSegment): void {
    for (const copier of this.copiers) copier.closed(segment);
  }

  removed(segment: SegmentName): void {
    for (const copier of this.copiers) copier.removed(segment);
  }

  /** The rules are others now. */
  changed(): void {
    for (const copier of this.copiers) copier.compareAgain();
  }

  /** What is wrong with each target; undefined: nothing. */
  states(): { readonly name: string; readonly problem: Reason | undefined }[] {
    return this.copiers.map((copier) => ({ name: copier.name, problem: problemOf(copier) }));
  }

  places(cameraIds: readonly string[]): ReturnType<CopyPlaces['places']> {
    const rules = cameraIds.map((id) => ({ id, rule: this.#ruleOf(id) }));
    const targets = this.copiers.map((copier) => {
      const { name, lackingFiles } = copier;
      const keepMs = rules.flatMap(({ id, rule }) =>
        rule?.targets.includes(name) ? Math.min(rule.keepMs ?? Infinity, this.#archive.wantedMs(id) ?? Infinity) : [],
      );
      return {
        name,
        problem: problemOf(copier),
        lackingFiles,
        lagMs: copier.lagMs(),
        keepMs: keepMs.length > 0 ? Math.max(...keepMs) : Infinity,
      };
    });
    return { targets, uncopied: rules.filter(({ rule }) => !rule || rule.targets.length === 0).length };
  }

  warnings(): Warning[] {
    return this.states().flatMap(({ name, problem }) => {
      if (!problem) return [];
      const code = problem.code === BEHIND ? BEHIND : 'copies-failing';
      return [{ code, message: `target ${name}: ${problem.message}`, cameraId: undefined }];
    });
  }
}

function problemOf(copier: Copier): Reason | undefined {
  if (copier.problem) return copier.problem;
  const lagMs = copier.lagMs();
  const hours = Math.floor(lagMs / HOUR_MS);
  const message = `a file has waited for ${hours} hours, ${copier.waitingFiles} files wait`;
  return lagMs > BEHIND_MS ? { code: BEHIND, message } : undefined;
}

export async function openTarget(
  { accessKeyId, accessKeyIdFile, secretAccessKey, secretAccessKeyFile, ca, ...target }: ConfiguredTarget,
  clock: Clock,
): Promise<Target> {
  const authorities = ca === undefined ? undefined : await readFile(ca, 'utf8');
  const accessKey = async () => ({
    accessKeyId: accessKeyId ?? (await wordIn(accessKeyIdFile)),
    secretAccessKey: secretAccessKey ?? (await wordIn(secretAccessKeyFile)),
  });
  return new Target({ ...target, accessKey, ca: authorities }, clock);
}

async function wordIn(file = ''): Promise<string> {
  const text = await readFile(file, 'utf8').catch((err: unknown) => {
    throw new S3Error('wrong-credentials', `the access key cannot be read: ${messageOf(err)}`, { cause: err });
  });
  return text.trim();
}
