// A job in a list: its kind, its progress and its buttons.

import type { Job } from '../app/answers.ts';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { cameraName, cameraOfFootage } from '../parts/camera-name.ts';
import { now, tick } from '../app/clock.ts';
import { hashOf } from '../app/router.ts';
import { may, session } from '../app/session.ts';
import { formatDuration, formatSize } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { addressFields } from '../playback/address.ts';
import type { Zone } from '../playback/zone.ts';
import { CopyLink } from './copy-link.ts';
import { beginCase, beginExport, digestOf, downloadAddress, downloadPath, removeJob } from './jobs.ts';
import { retryOf, type Retry } from './retry.ts';

interface JobItemProps {
  readonly job: Job;
  readonly zone: Zone;
  /** Whether to name several cameras in one line, without a link to their footage. */
  readonly isBrief?: boolean;
}

export function JobItem({ job, zone, isBrief = false }: JobItemProps): VNode {
  const [problem, setProblem] = useState('');
  const [isAsked, ask] = useState(false);
  const name = job.name ?? namesOf(job);
  const remove = (): void => {
    // Shown.
    removeJob(job.job_id).catch(() => setProblem('It cannot be removed now.'));
  };
  const isBusy = job.state === 'pending' || job.state === 'running';
  const { mayExport = false, hasEnd } = session.value ?? {};
  const retry = mayExport ? retryOf(job) : undefined;
  return html`<li class="job" data-state=${job.state} data-job=${job.job_id}>
    <div class="job-head">
      <b>${name}</b>
      <span class="job-state">${stateText(job)}</span>
    </div>
    <div class="job-facts">
      <span>${windowText(job, zone)}</span>
      ${!isBrief && html`<span>${kindText(job)}</span>`}
      ${job.size_bytes !== undefined && html`<span>${formatSize(job.size_bytes)}</span>`}
      ${(job.gaps?.length ?? 0) > 0 && html`<span class="job-gaps">${gapsText(job.gaps?.length ?? 0)}</span>`}
      ${!isBrief && html`<span>Made ${zone.date(job.created_at * 1000, false)} ${zone.time(job.created_at * 1000, 'minutes')}${hasEnd && job.by !== undefined ? ` by ${job.by}` : ''}</span>`}
    </div>
    ${!isBrief && job.cameras && html`<p class="job-facts">${[job.number, namesOf(job)].filter((word) => word !== undefined).join(' · ')}</p>`}
    ${!isBrief && [job.case_reason, job.notes].map((text) => text !== undefined && html`<p class="job-text">${text}</p>`)}
    ${isBusy && html`<progress max="100" value=${job.progress} aria-label=${`Progress of ${name}`}></progress>`}
    ${job.state === 'failed' && html`<p class="job-problem">${job.reason ?? 'The export failed.'}</p>`}
    ${job.state === 'done' && !job.is_expired && html`<${Digest} job=${job} />`}
    ${problem !== '' && html`<p class="job-problem" role="alert">${problem}</p>`}
    <div class="job-actions">
      ${job.state === 'done' && !job.is_expired && html`<a class="button" href=${downloadAddress(job.job_id)} download>Download</a>`}
      ${!isBrief && job.state === 'done' && !job.is_expired && html`<${CopyLink} path=${downloadPath(job.job_id)} name=${name} />`}
      ${!isBrief && job.from_ms !== undefined && html`<a class="button" href=${footageAddress(job, zone)}>Show footage</a>`}
      ${
        retry &&
        html`<button
          type="button"
          onClick=${() => void tryAgain(job, retry).catch((error: unknown) => setProblem(wordsOf(error)))}
        >
          ${retryText(retry)}
        </button>`
      }
      ${
        may('operator') &&
        html`<button
          type="button"
          class=${isAsked ? 'danger' : ''}
          onBlur=${() => ask(false)}
          onClick=${() => (job.is_kept && !isBusy && !isAsked ? ask(true) : remove())}
        >
          ${isBusy ? 'Cancel' : job.is_kept ? (isAsked ? 'End the case: its file is removed' : 'End the case') : 'Remove'}
        </button>`
      }
    </div>
  </li>`;
}

/** Rejects with Problem. */
async function tryAgain(job: Job, retry: Retry): Promise<void> {
  if (retry.kind === 'without-camera') {
    const { name, number, case_reason: reason, notes, is_kept: keep } = job;
    await beginCase({ cameras: retry.cameras, about: { name, number, reason, notes, keep }, ...retry.window });
    return;
  }
  for (const part of retry.parts) await beginExport({ cameraId: job.camera_id, speed: undefined, ...part });
}

const retryText = (retry: Retry): string =>
  retry.kind === 'in-two' ? 'Try again in two parts' : `Try again without ${cameraName(retry.cameraId)}`;

function Digest({ job }: { readonly job: Job }): VNode | false {
  const [digest, setDigest] = useState<string | undefined>(job.sha256);
  useEffect(() => {
    let isShown = true;
    digestOf(job).then(
      (found) => isShown && setDigest(found),
      () => {},
    );
    return () => {
      isShown = false;
    };
  }, [job.job_id, job.sha256]);
  // A case has the sums of its files in its report.
  if (job.cameras) return false;
  return html`<p class="job-digest">${digest !== undefined && html`SHA-256 <code>${digest}</code>`}</p>`;
}

const camerasOf = ({ camera_id, cameras }: Job): readonly string[] =>
  cameras?.map((camera) => camera.camera_id) ?? [camera_id];

const namesOf = (job: Job): string =>
  camerasOf(job)
    .map((id) => cameraName(id))
    .join(', ');

const kindText = ({ kind, speed, cameras }: Job): string =>
  cameras ? 'Case (ZIP)' : kind === 'timelapse' ? `Time-lapse ${speed ?? ''}×` : 'MP4';

export const gapsText = (count: number): string => (count === 1 ? '1 gap' : `${count} gaps`);

function windowText({ from_ms, to_ms }: Job, zone: Zone): string {
  if (from_ms === undefined || to_ms === undefined) return 'Window not known yet';
  const length = formatDuration((to_ms - from_ms) / 1000);
  return `${zone.date(from_ms, false)} ${zone.time(from_ms)}–${zone.time(to_ms)} (${length})`;
}

function stateText(job: Job): string {
  void tick.value; // counts down
  switch (job.state) {
    case 'pending':
      return 'Waiting';
    case 'running':
      return `${job.progress} %`;
    case 'failed':
      return 'Failed';
    default: {
      if (job.is_expired) return 'Expired';
      if (job.is_kept) return 'Done · kept until it is ended';
      const left = (job.expires_at ?? 0) - now() / 1000;
      return left > 0 ? `Done · kept for ${formatDuration(left)}` : 'Done';
    }
  }
}

const footageAddress = (job: Job, zone: Zone): string => {
  const { from_ms: inMs, to_ms: outMs } = job;
  const widthMs = inMs === undefined || outMs === undefined ? undefined : Math.max(60_000, (outMs - inMs) * 2);
  return hashOf(
    'playback',
    addressFields({ cameras: camerasOf(job).map(cameraOfFootage), atMs: inMs, widthMs, inMs, outMs }, zone),
  );
};
