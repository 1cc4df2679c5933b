// What the recorders of a pool copy to object storage: the rules of the pool and its cameras, and the targets that they name. Pure.

import { MAX_TARGETS, type ArchiveTarget } from '../../crds/archive-target.ts';
import type { Camera } from '../../crds/camera.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';

type Rule = NonNullable<Camera['spec']['copies']>;

interface Copying {
  /** Those that are used, by name. */
  readonly targets: readonly ArchiveTarget[];
  /** The first that fits a camera counts; without cameras, it fits all. */
  readonly rules: readonly (Rule & { readonly cameras?: readonly string[] })[];
  /** What is not copied although somebody asked for it, and why. */
  readonly refused: readonly string[];
}

/** A pool with what its recorders copy and measure; without it, nothing. */
export type ConfiguredPool = RecorderPool & {
  readonly copying?: Copying | undefined;
  /** `objectives` of the recorder's configuration. */
  readonly objectives?: readonly object[];
};

const CONFIG_DIRECTORY = '/etc/recorder';
const KEYS_DIRECTORY = `${CONFIG_DIRECTORY}-targets`;
const KEYS = ['accessKeyId', 'secretAccessKey'] as const;
/** What the configuration of a recorder may have. */
const MAX_RULES = 100;

export const namesTargets = ({ spec }: RecorderPool, cameras: readonly Camera[]): boolean =>
  [spec.archive.copies, ...cameras.map((camera) => camera.spec.copies)].some((rule) => (rule?.targets.length ?? 0) > 0);

/** `all`: the ArchiveTargets of the namespace. Recorders refuse a configuration with a mistake as a whole, so nothing wrong gets there. */
export function copyingOf(pool: RecorderPool, cameras: readonly Camera[], all: readonly ArchiveTarget[]): Copying {
  const refused: string[] = [];
  const { retention, copies: common } = pool.spec.archive;
  const byName = new Map(all.map((target) => [target.metadata.name, target]));
  const used = new Map<string, ArchiveTarget>();
  const targetOf = (name: string, whose: string): ArchiveTarget | undefined => {
    const target = byName.get(name);
    if (target && !URL.canParse(target.spec.endpoint)) refused.push(`the endpoint of ${name} is no address`);
    else if (!target) refused.push(`${whose}: there is no ArchiveTarget ${name}`);
    else if (!used.has(name) && used.size >= MAX_TARGETS)
      refused.push(`${whose}: ${name} would be the ${MAX_TARGETS + 1}th target of the pool`);
    else return target;
    return undefined;
  };
  const checked = (rule: Rule, whose: string, maxAges: readonly (number | undefined)[]): Rule => {
    const maxAge = Math.min(...maxAges.map((seconds) => seconds ?? Infinity));
    if ((rule.keepSeconds ?? 0) > maxAge) {
      refused.push(`${whose}: copies.keepSeconds is longer than maxAgeSeconds, which holds for copies, too`);
      return { targets: [], afterSeconds: rule.afterSeconds };
    }
    const targets = rule.targets.filter((name) => {
      const target = targetOf(name, whose);
      if (!target) return false;
      const isLockedTooLong =
        (target.spec.objectLock?.forSeconds ?? 0) > Math.min(maxAge, rule.keepSeconds ?? Infinity);
      if (isLockedTooLong)
        refused.push(`${whose}: objectLock of ${name} is longer than copies and footage may be kept`);
      else used.set(name, target);
      return !isLockedTooLong;
    });
    return { ...rule, targets };
  };
  const last = common && checked(common, 'the pool', [retention?.maxAgeSeconds]);
  const rules = new Map<string, { rule: Rule; cameras: string[] }>();
  for (const { metadata, spec } of cameras.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    if (!spec.copies) continue;
    const { record, preview } = spec;
    const ages = [retention, record.retention, preview?.retention].map((limits) => limits?.maxAgeSeconds);
    const rule = checked(spec.copies, metadata.name, ages);
    const same = rules.get(JSON.stringify(rule));
    if (same) same.cameras.push(metadata.name);
    else rules.set(JSON.stringify(rule), { rule, cameras: [metadata.name] });
  }
  const own = [...rules.values()].map(({ rule, cameras: names }) => ({ ...rule, cameras: names }));
  for (const { cameras: names } of own.splice(MAX_RULES - 1))
    refused.push(`${names[0]}: a pool has at most ${MAX_RULES} different copies`);
  return {
    targets: [...used.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)),
    rules: [...own, ...(last ? [last] : [])],
    refused: [...new Set(refused)],
  };
}

/** `archive.targets` of the recorder's configuration. */
export const targetSettings = ({ metadata: pool, copying }: ConfiguredPool): readonly object[] =>
  (copying?.targets ?? []).map(({ metadata: { name }, spec }) => {
    const { objectLock, credentialsSecretRef: _secret, ca, serverSideEncryption: encryption, ...same } = spec;
    return {
      name,
      prefix: `${pool.namespace}/${pool.name}`,
      ...same,
      ...(encryption && { serverSideEncryption: encryption === 'KeyManagement' ? 'aws:kms' : 'AES256' }),
      ...Object.fromEntries(KEYS.map((key) => [`${key}File`, `${KEYS_DIRECTORY}/${name}/${key}`])),
      ...(ca !== undefined && { ca: `${CONFIG_DIRECTORY}/${authorityFile(name)}` }),
      ...(objectLock && {
        objectLock: { mode: objectLock.mode.toLowerCase(), for: `${objectLock.forSeconds}s` },
      }),
    };
  });

/** `archive.copies` of the recorder's configuration. */
export const ruleSettings = ({ copying }: ConfiguredPool): readonly object[] =>
  (copying?.rules ?? []).map(({ targets, cameras, afterSeconds, keepSeconds }) => ({
    targets,
    ...(cameras && { cameras }),
    after: `${afterSeconds}s`,
    ...(keepSeconds !== undefined && { keep: `${keepSeconds}s` }),
  }));

const authorityFile = (target: string): string => `target-${target}.crt`;

/** The authorities of targets, by the names of their files in the ConfigMap. */
export const authorityFiles = ({ copying }: ConfiguredPool): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (copying?.targets ?? []).flatMap(({ metadata, spec }) =>
      spec.ca === undefined ? [] : [[authorityFile(metadata.name), spec.ca]],
    ),
  );

/** A pod starts, and records, without a Secret that is missing. */
const keySources = ({ copying }: ConfiguredPool): readonly object[] =>
  (copying?.targets ?? []).map(({ metadata: { name }, spec }) => ({
    secret: {
      name: spec.credentialsSecretRef.name,
      optional: true,
      items: KEYS.map((key) => ({ key, path: `${name}/${key}` })),
    },
  }));

export function keyVolumes(pool: ConfiguredPool): readonly object[] {
  const sources = keySources(pool);
  return sources.length > 0 ? [{ name: 'targets', projected: { sources } }] : [];
}

export const keyMounts = (pool: ConfiguredPool) =>
  keyVolumes(pool).map(() => ({ name: 'targets', mountPath: KEYS_DIRECTORY, readOnly: true }));

/** Ports of the services, which may be in the cluster. */
export const targetPorts = ({ copying }: ConfiguredPool): readonly number[] => [
  ...new Set(
    (copying?.targets ?? []).map(({ spec }) => {
      const { port, protocol } = new URL(spec.endpoint);
      return Number(port || (protocol === 'https:' ? 443 : 80));
    }),
  ),
];
