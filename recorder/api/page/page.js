// The page: a tile a camera with its live picture, its state and its newest recordings.

import { ApiError, getJson, loadToken, postJson, recordingUrl, saveToken, thumbnailUrl } from './api.js';
import { LivePlayer } from './player.js';
import { PtzControls } from './ptz.js';

const CAMERAS_EVERY_MS = 2_000;
const RECORDINGS_EVERY_MS = 10_000;
const NEWEST = 5;
const REFUSAL_SHOWN_MS = 10_000;
const DAY_SECONDS = 86_400;

const STATES = { connecting: 'Connecting', recording: 'Recording', retrying: 'Retrying', stopped: 'Stopped' };
const CODECS = { h264: 'H.264', h265: 'H.265', aac: 'AAC', opus: 'Opus', flac: 'FLAC' };
const BADGES = [...Object.keys(STATES), 'failed', 'silent'];
const NOTICES = { connecting: 'Connecting …', stopped: 'Not recorded.' };

const byId = (id) => document.getElementById(id);
/** Camera id to its tile. */
const tiles = new Map();
let token = loadToken();

class Tile {
  element;
  #camera;
  #player;
  #video;
  /** Of a camera that can be moved. */
  #ptz;
  #recordings = '';
  /** Why the recorder did not do what was asked for. */
  #refusal;
  #recordingsAt = -Infinity;
  #visible = false;
  /** A tile that is scrolled away takes no bandwidth and no decoder. */
  #observer = new IntersectionObserver(
    ([entry]) => {
      this.#visible = entry.isIntersecting;
      this.#playWhenSeen();
    },
    { rootMargin: '200px' },
  );

  constructor(camera) {
    this.element = byId('camera').content.firstElementChild.cloneNode(true);
    this.element.dataset.camera = camera.id;
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
    const { recording, codecs } = camera;
    const failed = recording.state === 'failed';
    const badge = failed ? 'failed' : camera.silent ? 'silent' : camera.state;
    this.element.classList.remove(...BADGES.map((kind) => `is-${kind}`));
    this.element.classList.add(`is-${badge}`);
    this.#find('.badge').textContent =
      badge === 'silent'
        ? `Silent since ${formatTime(camera.silent_since)}`
        : failed
          ? 'Not recording'
          : STATES[camera.state];
    this.#find('.name').textContent = camera.name;
    this.#find('.bitrate').textContent = camera.state === 'recording' ? formatBitrate(camera.bitrate) : '';
    this.#find('.streams').textContent = describeCodecs(codecs, camera.transport);
    const reason = failed ? recording.reason : camera.state === 'recording' ? oddityOf(camera) : camera.reason;
    const shown = this.#refusal ?? reason?.message ?? '';
    this.#find('.reason').textContent = shown;
    this.#find('.reason').hidden = shown === '';
    this.#find('.switch').textContent = camera.state === 'stopped' ? 'Start' : 'Stop';
    this.#find('.switch').title = camera.state === 'stopped' ? 'Record this camera' : 'Do not record this camera';
    // What was seen last, until there is something to see.
    if (camera.state !== 'recording' && !this.#video.poster)
      this.#video.poster = thumbnailUrl(window.location.origin, camera.id, token);
    this.#showSound();
    this.#showPtz();
    this.#playWhenSeen();
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

  #playWhenSeen() {
    const wanted = this.#visible && this.#camera.state !== 'stopped';
    if (!wanted) this.#stopPlayer();
    else if (!this.#player) this.#startPlayer();
  }

  #startPlayer() {
    this.#player = new LivePlayer(this.#video, { cameraId: this.#camera.id, token });
    this.#player.addEventListener('state', ({ detail: { state, message } }) => {
      this.element.classList.toggle('playing', state === 'playing');
      const comfort = state === 'unsupported' && this.#camera.recording.state === 'writing' ? ' It is recorded.' : '';
      this.#find('.notice').textContent = (message || NOTICES[state] || '') + comfort;
    });
    this.#player.start();
  }

  #stopPlayer() {
    this.#player?.stop();
    this.#player = undefined;
    this.element.classList.remove('playing');
    this.#find('.notice').textContent = NOTICES[this.#camera.state] ?? '';
  }

  #showPtz() {
    const { id, ptz } = this.#camera;
    if (ptz === (this.#ptz !== undefined)) return;
    this.#ptz?.remove();
    this.#ptz = ptz ? new PtzControls(id, (path, value) => postJson(path, value, token)) : undefined;
    if (this.#ptz) this.#find('.screen').append(this.#ptz.element);
  }

  #showSound() {
    const button = this.#find('.sound');
    button.hidden = !this.#camera.codecs.audio;
    button.setAttribute('aria-pressed', String(!this.#video.muted));
    button.title = this.#video.muted ? 'Sound on' : 'Sound off';
    button.setAttribute('aria-label', button.title);
  }

  /** Starts or stops recording; the next look at the cameras shows what came of it. */
  async #switch() {
    const button = this.#find('.switch');
    const { id, state } = this.#camera;
    button.disabled = true;
    this.#refusal = undefined;
    try {
      await postJson(state === 'stopped' ? '/cameras/start' : '/cameras/stop', { id }, token);
      this.update(await getJson(`/api/cameras/${encodeURIComponent(id)}`, token));
    } catch (error) {
      this.#refusal = describe(error);
      this.update(this.#camera);
      // Long enough to be read.
      setTimeout(() => (this.#refusal = undefined), REFUSAL_SHOWN_MS);
    }
    button.disabled = false;
  }

  async #loadRecordings() {
    this.#recordingsAt = performance.now();
    const to = Math.ceil(Date.now() / 1000);
    const path = `/api/archive/${encodeURIComponent(this.#camera.id)}/segments?from=${to - DAY_SECONDS}&to=${to}`;
    let newest;
    try {
      const { archive } = await getJson(path, token);
      newest = archive.slice(-NEWEST).reverse();
    } catch {
      return; // what is listed stays; the cameras' own poll says what is wrong
    }
    const shown = JSON.stringify(newest);
    if (shown === this.#recordings) return;
    this.#recordings = shown;
    this.#find('.recordings ul').replaceChildren(...newest.map((segment) => this.#recordingItem(segment)));
  }

  #recordingItem(segment) {
    const item = document.createElement('li');
    const button = document.createElement('button');
    button.type = 'button';
    button.dataset.filename = segment.filename;
    button.append(span('time', formatTime(segment.timestamp)));
    if (segment.is_open) button.append(span('now', 'being written'));
    button.append(span('size', formatSize(segment.size)));
    button.addEventListener('click', () => playRecording(this.#camera, segment));
    item.append(button);
    return item;
  }
}

function span(className, text) {
  const element = document.createElement('span');
  element.className = className;
  element.textContent = text;
  return element;
}

/** What is to be said of a camera that is connected. */
const oddityOf = ({ silent, codecs }) =>
  silent ? { message: 'The camera is connected, but no video of it is written.' } : codecs.audio_dropped;

function describeCodecs({ video, audio }, transport) {
  const parts = [];
  if (video) parts.push(`${CODECS[video.codec] ?? video.codec} ${video.width}×${video.height}`);
  if (audio) parts.push(`${CODECS[audio.codec] ?? audio.codec} ${audio.sample_rate / 1000} kHz`);
  if (video && !audio) parts.push('no audio');
  if (transport) parts.push(transport.toUpperCase());
  return parts.join(' · ');
}

const formatBitrate = (bits) =>
  bits >= 1_000_000 ? `${(bits / 1_000_000).toFixed(1)} Mbit/s` : `${Math.round(bits / 1000)} kbit/s`;

const formatSize = (bytes) =>
  bytes >= 1_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${Math.ceil(bytes / 1000)} kB`;

/** Today's times without the date. */
function formatTime(timestamp) {
  const time = new Date(timestamp);
  const timeStyle = 'medium';
  if (time.toDateString() === new Date().toDateString()) return time.toLocaleTimeString(undefined, { timeStyle });
  return time.toLocaleString(undefined, { dateStyle: 'medium', timeStyle });
}

function playRecording({ name, node }, segment) {
  const video = byId('playback-video');
  const url = recordingUrl(node.playback, segment.filename, token);
  byId('playback-title').textContent = `${name}, ${formatTime(segment.timestamp)}`;
  byId('playback-download').href = recordingUrl(node.playback, segment.filename, token, { download: '1' });
  byId('playback-problem').hidden = true;
  // It comes from another port: without this nobody could take a still of it.
  video.crossOrigin = 'anonymous';
  video.src = url;
  byId('playback').showModal();
  video.play().catch(() => {});
}

byId('playback-video').addEventListener('error', () => {
  const { error } = byId('playback-video');
  if (!error || !byId('playback').open) return;
  byId('playback-problem').textContent = 'This browser cannot play this recording; it can still be downloaded.';
  byId('playback-problem').hidden = false;
});
byId('playback').addEventListener('close', () => {
  byId('playback-video').pause();
  byId('playback-video').removeAttribute('src');
  byId('playback-video').load();
});

function showCameras(cameras) {
  for (const [id, tile] of tiles) {
    if (cameras.some((camera) => camera.id === id)) continue;
    tile.remove();
    tiles.delete(id);
  }
  for (const camera of cameras) {
    const tile = tiles.get(camera.id);
    if (tile) tile.update(camera);
    else {
      const added = new Tile(camera);
      tiles.set(camera.id, added);
      byId('cameras').append(added.element);
    }
  }
  const recording = cameras.filter((camera) => camera.recording.state === 'writing' && !camera.silent).length;
  byId('empty').hidden = cameras.length > 0;
  byId('summary').textContent = cameras.length > 0 ? `${recording} of ${cameras.length} cameras recording` : '';
  const node = cameras[0]?.node.name;
  if (node) {
    byId('node').textContent = node;
    document.title = `${node} · Recorder`;
  }
}

/** Asks for a token until the recorder takes it. */
function logIn(problem) {
  const dialog = byId('login');
  byId('login-problem').textContent = problem;
  byId('login-problem').hidden = problem === '';
  byId('login-token').value = '';
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    byId('login-form').addEventListener(
      'submit',
      () => {
        token = byId('login-token').value.trim();
        saveToken(token);
        resolve();
      },
      { once: true },
    );
  });
}

function startOver() {
  for (const tile of tiles.values()) tile.remove();
  tiles.clear();
}

const describe = (error) => (error instanceof ApiError ? error.message : 'The recorder cannot be reached.');

async function refresh() {
  try {
    const { cameras } = await getJson('/api/cameras', token);
    byId('problem').hidden = true;
    byId('change-token').hidden = token === '';
    showCameras(cameras);
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      startOver();
      await logIn(token ? 'The recorder does not take this token.' : '');
      return refresh();
    }
    byId('problem').textContent = describe(error);
    byId('problem').hidden = false;
  }
  setTimeout(refresh, CAMERAS_EVERY_MS);
  return undefined;
}

byId('change-token').addEventListener('click', () => {
  token = '';
  saveToken('');
  startOver();
});
// Without a token there is nothing behind the dialogue.
byId('login').addEventListener('cancel', (event) => event.preventDefault());

void refresh();
