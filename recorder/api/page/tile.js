// The tile of a camera: its live picture, its state and its newest recordings.

import { getJson, postJson, thumbnailUrl } from './api.js';
import { describeCodecs, formatBitrate, formatTime } from './format.js';
import { LivePlayer } from './player.js';
import { PtzControls } from './ptz.js';
import { newestRecordings, playRecording, recordingItem } from './recordings.js';

const RECORDINGS_EVERY_MS = 10_000;
const REFUSAL_SHOWN_MS = 10_000;

const STATES = {
  connecting: 'Connecting',
  recording: 'Recording',
  retrying: 'Retrying',
  stopped: 'Stopped',
  unassigned: 'No node',
  unknown: 'Node is away',
};
const BADGES = [...Object.keys(STATES), 'failed', 'silent'];
const NOTICES = {
  connecting: 'Connecting …',
  stopped: 'Not recorded.',
  unassigned: 'No node records this camera.',
};
/** States in which there is no live picture. */
const DARK = new Set(['stopped', 'unassigned']);

export class Tile {
  element;
  #session;
  #camera;
  #player;
  #video;
  /** The buttons of a camera that can be moved. */
  #ptz;
  #recordings = '';
  /** Why the recorder did not carry out the last request. */
  #refusal;
  #recordingsAt = -Infinity;
  #visible = false;
  /** Stops the stream of a tile outside the view: it needs no bandwidth and no decoder. */
  #observer = new IntersectionObserver(
    ([entry]) => {
      this.#visible = entry.isIntersecting;
      this.#playWhenSeen();
    },
    { rootMargin: '200px' },
  );

  /** @param {object} camera @param {object} session token, and the nodes: see page.js */
  constructor(camera, session) {
    this.#session = session;
    this.element = document.getElementById('camera').content.firstElementChild.cloneNode(true);
    this.element.dataset.camera = camera.id;
    const nameId = `name-of-${camera.id}`;
    this.#find('.name').id = nameId;
    this.element.setAttribute('aria-labelledby', nameId);
    this.#video = this.#find('video');
    this.#find('.sound').addEventListener('click', () => {
      this.#video.muted = !this.#video.muted;
      this.#showSound();
    });
    this.#find('.large').addEventListener('click', () => {
      if (document.fullscreenElement) void document.exitFullscreen();
      else void this.#find('.screen').requestFullscreen();
    });
    this.#find('.switch').addEventListener('click', () => void this.#switch());
    this.update(camera);
    this.#observer.observe(this.element);
  }

  update(camera) {
    this.#camera = camera;
    const { recording, codecs, name } = camera;
    const failed = recording.state === 'failed';
    const badge = failed ? 'failed' : camera.silent ? 'silent' : camera.state;
    this.element.classList.remove(...BADGES.map((kind) => `is-${kind}`));
    this.element.classList.add(`is-${badge}`);
    this.#write('.badge', badgeText(badge, camera));
    this.#write('.name', name);
    this.#write('.bitrate', camera.state === 'recording' && camera.bitrate ? formatBitrate(camera.bitrate) : '');
    this.#write('.streams', describeCodecs(codecs, camera.transport));
    this.#write('.node', this.#session.directory && camera.node.name ? camera.node.name : '');
    const reason = failed ? recording.reason : camera.state === 'recording' ? oddityOf(camera) : camera.reason;
    const shown = this.#refusal ?? reason?.message ?? camera.problem ?? '';
    this.#write('.reason', shown);
    this.#find('.reason').hidden = shown === '';
    this.#video.setAttribute('aria-label', `Live picture of ${name}`);
    this.#showSwitch();
    // The thumbnail, until there is a live picture.
    if (camera.state !== 'recording' && !this.#video.poster && camera.base) {
      this.#video.poster = thumbnailUrl(camera.base, camera.id, this.#session.token);
    }
    this.#showSound();
    this.#showPtz();
    this.#playWhenSeen();
    this.#player?.moved(camera.base);
    if (performance.now() - this.#recordingsAt > RECORDINGS_EVERY_MS) void this.#loadRecordings();
  }

  remove() {
    this.#observer.disconnect();
    this.#ptz?.remove();
    this.#stopPlayer();
    this.element.remove();
  }

  #find(selector) {
    return this.element.querySelector(selector);
  }

  /** Writes only text that has changed: screen readers announce every write. */
  #write(selector, text) {
    const element = this.#find(selector);
    if (element.textContent !== text) element.textContent = text;
  }

  #playWhenSeen() {
    const wanted = this.#visible && !DARK.has(this.#camera.state);
    if (!wanted) this.#stopPlayer();
    else if (!this.#player) this.#startPlayer();
  }

  #startPlayer() {
    const { directory, token } = this.#session;
    const { id } = this.#camera;
    this.#player = new LivePlayer(this.#video, {
      cameraId: id,
      token,
      ...(directory ? { locate: () => directory.locate(id) } : {}),
    });
    this.#player.addEventListener('state', ({ detail: { state, message } }) => {
      this.element.classList.toggle('playing', state === 'playing');
      const comfort = state === 'unsupported' && this.#camera.recording.state === 'writing' ? ' It is recorded.' : '';
      this.#write('.notice', (message || NOTICES[state] || '') + comfort);
    });
    this.#player.start();
  }

  #stopPlayer() {
    this.#player?.stop();
    this.#player = undefined;
    this.element.classList.remove('playing');
    this.#write('.notice', NOTICES[this.#camera.state] ?? '');
  }

  #showSwitch() {
    const button = this.#find('.switch');
    const { state, name, base } = this.#camera;
    const isStopped = state === 'stopped';
    button.hidden = !base || state === 'unassigned' || state === 'unknown';
    if (button.textContent === (isStopped ? 'Start' : 'Stop')) return;
    button.textContent = isStopped ? 'Start' : 'Stop';
    button.title = isStopped ? 'Record this camera' : 'Do not record this camera';
    button.setAttribute('aria-label', `${button.textContent} recording ${name}`);
  }

  #showPtz() {
    const { id, ptz } = this.#camera;
    if (ptz === (this.#ptz !== undefined)) return;
    this.#ptz?.remove();
    this.#ptz = ptz ? new PtzControls(id, (path, value) => this.#post(path, value)) : undefined;
    if (this.#ptz) this.#find('.screen').append(this.#ptz.element);
  }

  #showSound() {
    const button = this.#find('.sound');
    button.hidden = !this.#camera.codecs.audio;
    button.setAttribute('aria-pressed', String(!this.#video.muted));
    button.title = this.#video.muted ? 'Sound on' : 'Sound off';
    button.setAttribute('aria-label', 'Sound');
  }

  #post(path, value) {
    return postJson(new URL(path, this.#camera.base), value, this.#session.token);
  }

  /** Starts or stops recording; the next request for the cameras shows the result. */
  async #switch() {
    const button = this.#find('.switch');
    const { id, state, base } = this.#camera;
    button.disabled = true;
    this.#refusal = undefined;
    try {
      await this.#post(state === 'stopped' ? '/cameras/start' : '/cameras/stop', { id });
      const camera = await getJson(new URL(`/api/cameras/${encodeURIComponent(id)}`, base), this.#session.token);
      this.update({ ...this.#camera, ...camera });
    } catch (error) {
      this.#refusal = this.#session.describe(error);
      this.update(this.#camera);
      // Shown long enough to be read.
      setTimeout(() => (this.#refusal = undefined), REFUSAL_SHOWN_MS);
    }
    button.disabled = false;
  }

  async #loadRecordings() {
    this.#recordingsAt = performance.now();
    const { newest, missing } = await newestRecordings(this.#camera, this.#session);
    const note =
      missing.length > 0 ? this.#session.missingText(missing) : newest.length > 0 ? '' : 'None of the last 24 hours.';
    this.#write('.recordings-note', note);
    // If no node answers, the list stays as it is.
    if (newest.length === 0 && missing.length > 0) return;
    const shown = JSON.stringify(newest);
    if (shown === this.#recordings) return;
    this.#recordings = shown;
    const several = new Set(newest.map(({ nodeId }) => nodeId)).size > 1;
    const items = newest.map((segment) =>
      recordingItem(segment, several ? segment.nodeId : '', () =>
        playRecording(this.#camera.name, segment, this.#session.token),
      ),
    );
    this.#replaceItems(items);
  }

  /** Replaces the list and keeps the keyboard focus on the same recording. */
  #replaceItems(items) {
    const list = this.#find('.recordings ul');
    const { filename } = list.contains(document.activeElement) ? document.activeElement.dataset : {};
    list.replaceChildren(...items);
    if (filename) list.querySelector(`[data-filename="${CSS.escape(filename)}"]`)?.focus();
  }
}

function badgeText(badge, camera) {
  if (badge === 'failed') return 'Not recording';
  if (badge !== 'silent') return STATES[badge];
  return camera.silent_since ? `Silent since ${formatTime(camera.silent_since)}` : 'Silent';
}

/** The notice of a camera that is connected. */
const oddityOf = ({ silent, codecs }) =>
  silent
    ? { message: 'The camera is connected, but no video of it is written.' }
    : (codecs.video_remark ?? codecs.audio_dropped);
