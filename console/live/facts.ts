// The panel beside a camera's picture with its details.

import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Camera } from '../app/camera.ts';
import { directory } from '../app/cameras.ts';
import { conditionOf, wordsOfCondition } from '../app/condition.ts';
import { isStale } from '../app/contact.ts';
import { hashOf } from '../app/router.ts';
import { describeCodecs, formatBitrate, formatClock, formatSize, formatTime } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { newestRecordings, type Recording } from './recordings.ts';

const AGAIN_MS = 15_000;

export function Facts({ camera }: { readonly camera: Camera }): VNode {
  const { codecs, preview, transport, bitrate, frame_rate: frameRate, frames, viewers, node } = camera;
  const [newest, setNewest] = useState<readonly Recording[]>();
  const [missing, setMissing] = useState<readonly string[]>([]);
  // The nodes with footage of it are others after a while.
  const latest = useRef(camera);
  latest.current = camera;
  useEffect(() => {
    let isShown = true;
    const load = async (): Promise<void> => {
      const found = await newestRecordings(latest.current);
      if (!isShown) return;
      setMissing(found.missing);
      // If no node answers, the list is not changed.
      if (found.newest.length > 0 || found.missing.length === 0) setNewest(found.newest);
    };
    void load();
    const timer = setInterval(() => document.hidden || void load(), AGAIN_MS);
    return () => {
      isShown = false;
      clearInterval(timer);
    };
  }, [camera.id]);
  const several = new Set(newest?.map(({ nodeId }) => nodeId)).size > 1;
  const remarks = [codecs.video_remark, codecs.audio_dropped].flatMap((reason) => reason?.message ?? []);
  const row = (name: string, value: unknown): VNode | false =>
    value !== undefined &&
    value !== '' &&
    html`<div>
      <dt>${name}</dt>
      <dd>${value}</dd>
    </div>`;
  return html`<aside class="facts" aria-label=${`Facts about ${camera.name}`}>
    <dl>
      ${row('State', isStale.value ? 'unknown' : wordsOfCondition(conditionOf(camera), formatTime))}
      ${row('Streams', describeCodecs(codecs, transport))}
      ${row('Preview', preview ? (preview.reason?.message ?? describeCodecs(preview.codecs, null)) || 'not watched yet' : undefined)}
      ${row('Bit rate', camera.state === 'recording' && bitrate > 0 ? formatBitrate(bitrate) : undefined)}
      ${row('Pictures', camera.state === 'recording' && frameRate ? `${Math.round(frameRate)} /s` : undefined)}
      ${row('Lost packets', frames?.lost_packets)} ${row('Viewers', viewers)}
      ${row('Node', directory.value ? (node.name ?? 'none') : undefined)} ${row('Id', camera.id)}
      ${remarks.map((text) => row('Remark', text))}
    </dl>
    <section class="recordings">
      <h2>Newest recordings</h2>
      <ul>
        ${newest?.map(
          ({ filename, startMs, sizeBytes, isOpen, nodeId }) =>
            html`<li key=${`${nodeId}/${filename}`}>
              <a href=${hashOf('playback', { c: camera.id, t: new Date(startMs).toISOString() })}>
                <span class="time">${formatTime(startMs).replace(/\d\d:\d\d$/, '')}${formatClock(startMs)}</span>
                ${isOpen && html`<span class="now">being written</span>`}
                ${several && html`<span class="where">${nodeId}</span>`}
                <span class="size">${formatSize(sizeBytes)}</span>
              </a>
            </li>`,
        )}
      </ul>
      ${
        missing.length > 0
          ? html`<p class="quiet">
              ${directory.value ? `The recordings of ${missing.join(', ')} cannot be listed now.` : 'They cannot be listed now.'}
            </p>`
          : newest?.length === 0 && html`<p class="quiet">No recordings in the last 24 hours.</p>`
      }
    </section>
  </aside>`;
}
