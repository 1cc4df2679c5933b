// Formats device reports: as a table for people, as camera entries for the configuration file, as manifests for Kubernetes. All
// texts from devices were made printable before; YAML is written by a library that quotes where necessary.

import { Document, stringify } from 'yaml';
import { printable } from '../../../base/printable.ts';
import { hostIn } from '../../../crds/login-hosts.ts';
import { CAMERA_HOSTS } from '../../../crds/names.ts';
import { formatRtspUrl, parseRtspUrl } from '../../rtsp/url.ts';
import type { Profile } from '../client.ts';
import type { Credentials } from '../target.ts';
import type { DeviceReport } from './describe.ts';
import { cameraEntries, type CameraEntry } from './entries.ts';

const MAX_PROFILES_SHOWN = 4;
const API_VERSION = 'kube-nvr.dev/v1alpha1';

function describeProfile({ name, video }: Profile): string {
  if (!video) return `${name}: no video`;
  const { codec, width, height, framesPerSecond } = video;
  const rate = framesPerSecond === undefined ? '' : ` ${framesPerSecond} fps`;
  return `${name}: ${codec} ${width}x${height}${rate}`;
}

function describeProfiles(profiles: readonly Profile[]): string {
  const shown = profiles.slice(0, MAX_PROFILES_SHOWN).map(describeProfile);
  const more = profiles.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

/** One line per device under a header; empty if there is no device. */
export function formatTable(reports: readonly DeviceReport[]): string {
  if (reports.length === 0) return '';
  const rows = reports.map(({ device, information, profiles, movable, memory, problems }) => [
    device.address,
    information?.manufacturer || '-',
    information?.model || device.hardware || '-',
    information?.firmware || '-',
    movable ? 'yes' : '-',
    memory ? 'yes' : '-',
    [describeProfiles(profiles), ...problems.map((problem) => `(${problem})`)].filter((part) => part !== '').join(' '),
  ]);
  const table = [['ADDRESS', 'MAKER', 'MODEL', 'FIRMWARE', 'PTZ', 'MEMORY', 'PROFILES'], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => Array.from(row[column]!).length)));
  const pad = (cell: string, width: number): string => cell + ' '.repeat(width - Array.from(cell).length);
  return table
    .map(
      (row) =>
        `${row
          .map((cell, i) => pad(cell, widths[i]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

const describeEntry = ({ report: { device, information }, stream }: CameraEntry): string => {
  const what = [information?.manufacturer, information?.model].filter(Boolean).join(' ') || 'a device';
  const firmware = information?.firmware ? `, firmware ${information.firmware}` : '';
  return ` ${what} at ${device.address}${firmware}; ${describeProfile(stream.profile)}`;
};

/** The problem of a device that answers everything. */
export const NO_STREAM = 'it offers no H.264 or H.265';

/** Devices without an entry, as comments. */
function leftOut(reports: readonly DeviceReport[]): string[] {
  return reports
    .filter(({ streams }) => streams.length === 0)
    .map(({ device, problems }) => ` ${device.address}: left out, ${problems.join('; ') || NO_STREAM}`);
}

/** The setting for a device with a memory, if it is sure which of its recordings belong to a camera: it has one sensor or input. */
const edgeOf = ({ memory, streams }: DeviceReport): { readonly edge?: { readonly onvif: true } } =>
  memory && streams.length === 1 ? { edge: { onvif: true } } : {};

/** The `cameras:` part of a configuration file, including the login. */
export function formatConfig(reports: readonly DeviceReport[], credentials: Credentials | undefined): string {
  const document = configOf(cameraEntries(reports), credentials);
  const notes = leftOut(reports);
  if (notes.length > 0) document.commentBefore = notes.join('\n');
  return document.toString({ lineWidth: 0 });
}

/** The same for these cameras, as a document. */
export function configOf(entries: readonly CameraEntry[], credentials: Credentials | undefined): Document {
  const document = new Document({
    cameras: entries.map(({ id, name, report, stream }) => ({
      id,
      ...(name === undefined ? {} : { name }),
      source: formatRtspUrl({ ...parseRtspUrl(stream.source), credentials }),
      ...(stream.preview === undefined ? {} : { preview: { source: stream.preview } }),
      ...(stream.snapshot === undefined ? {} : { snapshot: stream.snapshot }),
      ...(report.movable ? { ptz: true } : {}),
      onvif: report.device.url,
      ...edgeOf(report),
    })),
  });
  entries.forEach((entry, index) => {
    const node = document.getIn(['cameras', index], true) as { commentBefore?: string };
    node.commentBefore = describeEntry(entry);
  });
  return document;
}

/** A Secret and a Camera for each, in the namespace of the user that applies them. */
export function formatManifests(reports: readonly DeviceReport[], credentials: Credentials | undefined): string {
  const documents = cameraEntries(reports).map((entry) => manifestOf(entry, credentials));
  return [...leftOut(reports).map((note) => `#${note}\n`), ...documents].join('');
}

/** A Secret, if there is a login, and a Camera. */
export function manifestOf(entry: CameraEntry, credentials: Credentials | undefined): string {
  const { id, name, report, stream } = entry;
  const secretName = `${id}-login`.slice(-253);
  const camera = {
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: { name: id },
    spec: {
      ...(name === undefined ? {} : { displayName: name }),
      source: stream.source,
      ...(stream.preview === undefined ? {} : { preview: { source: stream.preview } }),
      ...(credentials ? { credentialsSecretRef: { name: secretName } } : {}),
      ...(stream.snapshot === undefined ? {} : { snapshot: stream.snapshot }),
      ...(report.movable ? { ptz: true } : {}),
      onvif: report.device.url,
      ...edgeOf(report),
    },
  };
  const secret = credentials && {
    apiVersion: 'v1',
    kind: 'Secret',
    // For the host of the stream and the other known addresses of this camera.
    metadata: { name: secretName, annotations: { [CAMERA_HOSTS]: hostsOf(camera.spec) } },
    type: 'kubernetes.io/basic-auth',
    stringData: { username: credentials.username, password: credentials.password },
  };
  const write = (value: unknown): string => stringify(value, { lineWidth: 0 });
  return `---\n#${describeEntry(entry)}\n${secret ? `${write(secret)}---\n` : ''}${write(camera)}`;
}

/** The hosts of a camera's addresses, in the format of a Secret's annotation. */
const hostsOf = ({ source, snapshot, onvif }: { source: string; snapshot?: string; onvif: string }): string =>
  [...new Set([source, snapshot, onvif].flatMap((address) => hostIn(address ?? '') ?? []))].join(',');

/** A line for standard error, beside the output. */
export const formatProblem = (problem: string): string => `recorder discover: ${printable(problem, 400)}\n`;
