// Makes camera entries with ids from device reports; the basis of both output formats.

import type { DeviceReport, Stream } from './describe.ts';

export interface CameraEntry {
  /**
   * `[a-z0-9]([a-z0-9-]*[a-z0-9])?`, at most 63 characters: valid as an id of the configuration and as a Kubernetes name (RFC
   * 1123).
   */
  readonly id: string;
  /** For people; undefined where it would be ambiguous. */
  readonly name: string | undefined;
  readonly report: DeviceReport;
  readonly stream: Stream;
}

const MAX_MODEL = 36;

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** Ids such as `dome-1-10-0-0-9`; with `…-2` for the second sensor or input, and where two ids would be equal. */
export function cameraEntries(reports: readonly DeviceReport[]): readonly CameraEntry[] {
  const ids = new Set<string>();
  const entries: CameraEntry[] = [];
  for (const report of reports) {
    for (const stream of report.streams) entries.push({ id: newId(report, ids), name: undefined, report, stream });
  }
  return withNames(entries);
}

function newId({ device, information }: DeviceReport, taken: Set<string>): string {
  const model = slug(information?.model || device.hardware || 'camera').slice(0, MAX_MODEL);
  const base = `${slug(model) || 'camera'}-${slug(device.address)}`;
  let id = base;
  for (let number = 2; taken.has(id); number++) id = `${base}-${number}`;
  taken.add(id);
  return id;
}

/** Uses the device's own name if no other device has it: one name for several would tell nobody which is which. */
function withNames(entries: readonly CameraEntry[]): readonly CameraEntry[] {
  const uses = new Map<string, number>();
  const count = (text: string) => uses.set(text, (uses.get(text) ?? 0) + 1);
  for (const { id, report } of entries) {
    count(id);
    if (report.device.name !== undefined) count(report.device.name);
  }
  return entries.map((entry) => {
    const { name } = entry.report.device;
    return { ...entry, name: name && uses.get(name) === 1 ? name : undefined };
  });
}
