// Exports of all nodes, and protected footage.

import { computed } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { cameraName } from '../parts/camera-name.ts';
import { go, hashOf, route } from '../app/router.ts';
import { may } from '../app/session.ts';
import { zone as zoneName } from '../app/shown-zone.ts';
import { html } from '../parts/html.ts';
import { addressFields } from '../playback/address.ts';
import { Zone } from '../playback/zone.ts';
import { JobItem } from './job-item.ts';
import type { Protection } from '../app/answers.ts';
import { followJobs, jobs, jobsProblem, jobsUnlisted } from './jobs.ts';
import { protections, protectionsProblem, protectionsUnlisted, refreshProtections, release } from './protections.ts';

const zone = computed(() => new Zone(zoneName.value));

const LISTS = [
  { label: 'Exports', list: undefined, title: 'Exports' },
  { label: 'Cases', list: 'cases', title: 'Cases' },
  { label: 'Protected', list: 'protected', title: 'Protected footage' },
] as const;

export function ExportsView(): VNode {
  const shown = LISTS.find(({ list }) => list === (route.value.params.get('list') ?? undefined)) ?? LISTS[0];
  return html`<main class="view exports">
    <header class="exports-bar">
      <h1>${shown.title}</h1>
      <div class="segments" role="group" aria-label="List">
        ${LISTS.map(
          ({ label, list }) =>
            html`<button type="button" aria-pressed=${list === shown.list} onClick=${() => go('exports', { list })}>
              ${label}
            </button>`,
        )}
      </div>
    </header>
    ${shown.list === 'protected' ? html`<${ProtectedList} />` : html`<${JobList} ofCases=${shown.list === 'cases'} />`}
  </main>`;
}

function JobList({ ofCases }: { readonly ofCases: boolean }): VNode {
  useEffect(() => followJobs(), []);
  const list = jobs.value?.filter(({ is_kept = false }) => is_kept === ofCases);
  const what = ofCases ? 'cases' : 'exports';
  return html`
    ${jobsProblem.value !== undefined && html`<p class="form-problem" role="alert">${jobsProblem.value}</p>`}
    ${jobsUnlisted.value.map((why) => html`<p class="form-problem" role="status">${`${why}. Its ${what} are not listed.`}</p>`)}
    ${list === undefined && jobsProblem.value === undefined && html`<p class="quiet" aria-busy="true">Loading …</p>`}
    ${
      list?.length === 0 &&
      html`<p class="exports-empty">
        No ${what} yet. Choose cameras and a time in <a href=${hashOf('playback')}>Playback</a>, then press
        ${ofCases ? ' Make a case' : ' Export'}.
      </p>`
    }
    <ul class="jobs">
      ${list?.map((job) => html`<${JobItem} key=${job.job_id} job=${job} zone=${zone.value} />`)}
    </ul>
  `;
}

function ProtectedList(): VNode {
  useEffect(() => void refreshProtections(), []);
  const list = protections.value;
  return html`
    ${protectionsProblem.value !== undefined && html`<p class="form-problem" role="alert">${protectionsProblem.value}</p>`}
    ${protectionsUnlisted.value.map((why) => html`<p class="form-problem" role="status">${`${why}. What is protected there is not listed.`}</p>`)}
    ${list?.length === 0 && protectionsUnlisted.value.length === 0 && html`<p class="exports-empty">Nothing is protected.</p>`}
    <ul class="jobs">
      ${list?.map((one) => html`<${ProtectedItem} key=${one.id} protection=${one} />`)}
    </ul>
  `;
}

function ProtectedItem({ protection }: { readonly protection: Protection }): VNode {
  const { id, camera_id, node_id, from_ms: startMs, to_ms: endMs, note, until } = protection;
  const [problem, setProblem] = useState('');
  const [isAsked, ask] = useState(false);
  const untilMs = until === null ? undefined : Date.parse(until);
  const name = cameraName(camera_id);
  const inZone = zone.value;
  const fields = addressFields(
    {
      cameras: [camera_id],
      atMs: startMs,
      widthMs: Math.max(60_000, (endMs - startMs) * 2),
      inMs: startMs,
      outMs: endMs,
    },
    inZone,
  );
  return html`<li class="job protection" data-protection=${id}>
    <div class="job-head">
      <b>${name}</b>
      <span class="job-state">${untilMs === undefined ? 'For ever' : `Until ${inZone.date(untilMs)}`}</span>
    </div>
    <div class="job-facts">
      <span>${inZone.date(startMs)} ${inZone.time(startMs)} – ${inZone.date(endMs, false)} ${inZone.time(endMs)}</span>
      ${node_id !== undefined && html`<span>on ${node_id}</span>`}
    </div>
    ${note !== null && html`<p>${note}</p>`}
    ${problem !== '' && html`<p class="job-problem" role="alert">${problem}</p>`}
    <div class="job-actions">
      <a class="button" href=${hashOf('playback', fields)}>Show footage</a>
      ${
        may('operator') &&
        html`<button
          type="button"
          class=${isAsked ? 'danger' : ''}
          onBlur=${() => ask(false)}
          onClick=${() =>
            isAsked ? void release(protection).catch((error: unknown) => setProblem(wordsOf(error))) : ask(true)}
        >
          ${isAsked ? 'Release: retention may remove it' : 'Release'}
        </button>`
      }
    </div>
  </li>`;
}
