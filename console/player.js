// A live player for one camera: Media Source Extensions over the recorder's WebSocket. No dependencies; copy it.
//
//   import { LivePlayer } from './player.js';
//   const player = new LivePlayer(document.querySelector('video'), { cameraId: 'gate', token: '…' });
//   player.addEventListener('state', (event) => console.log(event.detail.state, event.detail.message));
//   player.start();
//
// It starts at the live edge and stays there: it plays a little faster when it lags, seeks when it lags far (a tab that
// slept), skips holes, reconnects when the connection or the camera is lost, and removes old data from the buffer.

/** How far behind the newest frame to play, in seconds; grows when the network is rough. */
const MIN_LAG = 0.15;
const MAX_LAG = 1.5;
/** A larger lag than this is corrected by a seek, a smaller one by a higher rate. */
const SEEK_LAG = 2;
const CATCH_UP_RATE = 1.1;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;
/** A camera that moves to another node returns soon: for this time the player tries again every second. */
const HURRY_MS = 60_000;
const HURRY_RETRY_MS = 1_000;
/** A failed node does not close its connections: after this time without data the player checks the node. */
const SILENT_MS = 3_000;
const ANSWER_MS = 5_000;
/** If the browser stops reading and more than this is queued, the player starts over. */
const MAX_QUEUED_BYTES = 32 * 1024 * 1024;
/** Data arrive, but nothing becomes playable for this time: audio that has stopped holds the video back. */
const STARVED_MS = 4_000;
const WATCH_MS = 500;

/** Close codes of the recorder after which another attempt would fail too. */
const FINAL = {
  4401: { state: 'refused', message: 'A token is needed.' },
  4403: { state: 'refused', message: 'This token may not watch.' },
  4404: { state: 'unknown', message: 'The recorder does not know this camera.' },
};
const UNKNOWN = 4404;
const CODECS_CHANGED = 4409;
const NO_PREVIEW = 4406;
const OFFLINE = 4503;

const NAMES = {
  h264: 'H.264',
  h265: 'H.265 (HEVC)',
  av1: 'AV1',
  mjpeg: 'Motion JPEG',
  aac: 'AAC',
  opus: 'Opus',
  flac: 'FLAC',
  mp2: 'MP2',
  mp3: 'MP3',
};

/**
 * States, as events named `state` with `detail: { state, message }`:
 * `connecting`, `playing`, `offline` (the camera sends nothing; trying again), `lost` (no connection; trying again),
 * `unsupported` (this browser cannot decode it), `refused`, `unknown` and `stopped`.
 */
export class LivePlayer extends EventTarget {
  #video;
  #options;
  #run = 0;
  #socket;
  #buffer;
  #queue = [];
  #queuedBytes = 0;
  #keyTimes = [];
  #retryTimer;
  #watchTimer;
  #retryMs = FIRST_RETRY_MS;
  #lag = MIN_LAG;
  #audio;
  #lastMessageAt = 0;
  /** When the last frame arrived, or the stream was first requested. */
  #lastPictureAt = 0;
  /** Base URL of the node that sends the stream, or is asked for it. */
  #base;
  #probing = false;
  #lastEnd = 0;
  #lastProgressAt = 0;
  #cleanups = [];

  /** @type {string} The last state, without its message. */
  state = 'stopped';

  /**
   * @param {HTMLVideoElement} video
   * @param {{ cameraId: string, baseUrl?: string, token?: string, audio?: boolean, quality?: 'main' | 'preview',
   *   locate?: () => Promise<string | undefined> }} options
   *   `baseUrl`: of the recorder, the page's own by default; `audio: false` for a silent tile; `quality: 'preview'`
   *   for the camera's second, smaller stream. `locate`, in a cluster:
   *   the `baseUrl` of the node that has the camera now, asked before each connection; see cluster.js.
   */
  constructor(video, options) {
    super();
    this.#video = video;
    this.#options = { baseUrl: window.location.origin, audio: true, ...options };
    this.#audio = this.#options.audio;
  }

  start() {
    this.stop();
    this.#video.playsInline = true;
    this.#listen(document, 'visibilitychange', () => this.#wake());
    this.#listen(this.#video, 'playing', () => this.#setState('playing', ''));
    this.#listen(this.#video, 'waiting', () => this.#onWaiting());
    this.#listen(this.#video, 'error', () => this.#retry('lost', 'The browser could not decode the stream.'));
    this.#lastPictureAt = performance.now();
    this.#watchTimer = setInterval(() => this.#watch(), WATCH_MS);
    void this.#connect();
  }

  stop() {
    this.#run++;
    clearTimeout(this.#retryTimer);
    clearInterval(this.#watchTimer);
    for (const cleanup of this.#cleanups.splice(0)) cleanup();
    this.#disconnect();
    this.#video.removeAttribute('src');
    this.#video.load();
    this.#setState('stopped', '');
  }

  /** To be called when the camera has moved to another node: connects there at once. */
  moved(baseUrl) {
    if (this.state === 'stopped' || !this.#base || !baseUrl || rootOf(baseUrl) === this.#base) return;
    void this.#reconnect();
  }

  /** Seconds between the newest frame here and the one on screen. */
  get lagSeconds() {
    const end = this.#end();
    return end === undefined ? 0 : end - this.#video.currentTime;
  }

  #listen(target, type, listener) {
    target.addEventListener(type, listener);
    this.#cleanups.push(() => target.removeEventListener(type, listener));
  }

  #setState(state, message) {
    if (state === 'playing') this.#retryMs = FIRST_RETRY_MS;
    this.state = state;
    this.dispatchEvent(new CustomEvent('state', { detail: { state, message } }));
  }

  /** Asks for the codecs of the camera, and opens its stream if this browser can play them. */
  async #connect() {
    const run = ++this.#run;
    clearTimeout(this.#retryTimer);
    this.#setState('connecting', '');
    const { baseUrl, cameraId, token, locate } = this.#options;
    try {
      const base = locate ? await locate() : baseUrl;
      if (run !== this.#run) return;
      if (base === undefined) return this.#retry('offline', 'No node records this camera now.');
      this.#base = rootOf(base);
      const url = `${this.#base}/api/cameras/${encodeURIComponent(cameraId)}`;
      const headers = token ? { authorization: `Bearer ${token}` } : {};
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(ANSWER_MS) });
      if (run !== this.#run) return;
      const final = this.#finalOf(4000 + response.status);
      if (final) return this.#setState(final.state, final.message);
      if (response.status === 404) return this.#retry('offline', 'The camera is on its way to another node.');
      if (!response.ok) return this.#retry('lost', 'The recorder answers with an error.');
      const camera = await response.json();
      if (run !== this.#run) return;
      const isPreview = this.#options.quality === 'preview';
      if (isPreview && !camera.preview) return this.#retry('offline', 'This camera has no preview.');
      const { video, audio } = isPreview ? camera.preview.codecs : camera.codecs;
      // The codecs of a preview are known once it was connected.
      if (isPreview && !video && !audio) return this.#open(run, undefined);
      if (!video && !audio) return this.#retry('offline', camera.reason?.message ?? 'No video yet.');
      const type = this.#chooseType({ video, audio });
      if (type) this.#open(run, type);
    } catch {
      // Shown, and tried again.
      if (run === this.#run) this.#retry('lost', 'The recorder cannot be reached.');
    }
  }

  /** Ends the player with a state in which another attempt would fail too. In a cluster, a camera that one node does not know may be on another. */
  #finalOf(code) {
    return code === UNKNOWN && this.#options.locate ? undefined : FINAL[code];
  }

  /** The type to play: the picture with audio when the browser can, without it otherwise; or only sound, when that is all. */
  #chooseType({ video, audio }) {
    const MediaSource = mediaSourceClass();
    if (!MediaSource) return this.#setState('unsupported', 'This browser has no Media Source Extensions.');
    const lead = video ?? audio;
    const alone = `${video ? 'video' : 'audio'}/mp4; codecs="${lead.codec_string}"`;
    if (!MediaSource.isTypeSupported(alone)) {
      const name = NAMES[lead.codec] ?? lead.codec;
      return this.#setState('unsupported', `This browser cannot play ${name} (${lead.codec_string}).`);
    }
    const both = video && audio && `video/mp4; codecs="${video.codec_string}, ${audio.codec_string}"`;
    const withAudio = Boolean(both && this.#audio && MediaSource.isTypeSupported(both));
    return { mime: withAudio ? both : alone, audio: withAudio };
  }

  /** `type` undefined: the first message only says that the codecs are known now. */
  #open(run, type) {
    const { cameraId, token, quality } = this.#options;
    const url = new URL(`${this.#base}/websocket/${encodeURIComponent(cameraId)}`);
    url.protocol = url.protocol.replace('http', 'ws');
    if (type && !type.audio) url.searchParams.set('audio', 'false');
    if (quality === 'preview') url.searchParams.set('quality', quality);
    if (token) url.searchParams.set('access_token', token);
    const socket = new WebSocket(url);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#lastMessageAt = performance.now();
    let first = true;
    socket.onmessage = ({ data }) => {
      if (run !== this.#run) return;
      if (!type) {
        void this.#reconnect();
        return;
      }
      // The previous picture stays until a newer one arrives.
      if (first) this.#attach(run, type.mime);
      first = false;
      this.#take(new Uint8Array(data));
    };
    socket.onclose = ({ code, reason }) => {
      if (run !== this.#run) return;
      const final = this.#finalOf(code);
      if (final) {
        this.#run++;
        this.#setState(final.state, final.message);
      } else if (code === CODECS_CHANGED) void this.#reconnect();
      else if (code === UNKNOWN) this.#retry('offline', 'The camera is on its way to another node.');
      else if (code === NO_PREVIEW) this.#retry('offline', 'This camera has no preview.');
      else if (code === OFFLINE) this.#retry('offline', `${reason || 'The camera is offline'}.`);
      else this.#retry('lost', 'The connection was lost.');
    };
  }

  /** Attaches a new MediaSource to the video element. */
  #attach(run, mime) {
    this.#buffer = undefined;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#keyTimes = [];
    this.#lastEnd = 0;
    this.#lastProgressAt = performance.now();
    const source = new (mediaSourceClass())();
    // A ManagedMediaSource (iPhone) opens only where remote playback is switched off.
    this.#video.disableRemotePlayback = true;
    source.addEventListener(
      'sourceopen',
      () => {
        URL.revokeObjectURL(this.#video.src);
        if (run !== this.#run) return;
        // Otherwise Safari treats the live edge as the end.
        source.duration = Infinity;
        const buffer = source.addSourceBuffer(mime);
        buffer.addEventListener('updateend', () => this.#onAppended(buffer));
        buffer.addEventListener('error', () => this.#onDecodeError(buffer));
        this.#buffer = buffer;
        this.#pump();
      },
      { once: true },
    );
    this.#video.src = URL.createObjectURL(source);
    this.#play();
  }

  #play() {
    this.#video.play().catch((error) => {
      // Sound needs a gesture of the user first: start without it.
      if (error.name !== 'NotAllowedError' || this.#video.muted) return;
      this.#video.muted = true;
      // The browser plays nothing without a gesture.
      this.#video.play().catch(() => {});
    });
  }

  #take(message) {
    this.#lastMessageAt = performance.now();
    this.#lastPictureAt = this.#lastMessageAt;
    this.#queue.push(message);
    this.#queuedBytes += message.length;
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.#retry('lost', 'The browser is too slow for this stream.');
    else this.#pump();
  }

  /** Appends everything in the queue as one buffer: browsers accept one append at a time. */
  #pump() {
    const buffer = this.#buffer;
    if (!buffer || buffer.updating || this.#queue.length === 0) return;
    const end = this.#end();
    if (end !== undefined && this.#queue.some(isKeyFrame)) this.#keyTimes.push(end);
    const data = this.#queue.length === 1 ? this.#queue[0] : concatenate(this.#queue, this.#queuedBytes);
    try {
      buffer.appendBuffer(data);
    } catch (error) {
      if (error.name === 'QuotaExceededError' && this.#trim()) return;
      this.#retry('lost', 'The browser does not accept more of the stream.');
      return;
    }
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  #onAppended(buffer) {
    if (buffer !== this.#buffer) return;
    this.#chase();
    if (!this.#trim()) this.#pump();
  }

  #onDecodeError(buffer) {
    if (buffer !== this.#buffer) return;
    // The audio may be the reason: try again without it.
    this.#audio = false;
    this.#retry('lost', 'The browser could not decode the stream.');
  }

  /** Where the newest frame ends; undefined before there is one. */
  #end() {
    try {
      const { buffered } = this.#buffer;
      return buffered.length === 0 ? undefined : buffered.end(buffered.length - 1);
    } catch {
      return undefined; // the element has detached the buffer
    }
  }

  /** Keeps the playing position shortly before the newest frame. */
  #chase() {
    const end = this.#end();
    if (end === undefined) return;
    const video = this.#video;
    const { buffered } = this.#buffer;
    if (end > this.#lastEnd) {
      this.#lastEnd = end;
      this.#lastProgressAt = performance.now();
    }
    const start = buffered.start(buffered.length - 1);
    const target = Math.max(start, end - this.#lag);
    const lag = end - video.currentTime;
    const inNewest = video.currentTime >= start - 0.01;
    // The position is far behind, in a hole, or beyond the edge because the stream has restarted.
    if (!inNewest || lag > this.#lag + SEEK_LAG || lag < -1) video.currentTime = target;
    const catchUp = lag > this.#lag * 1.5 + 0.1;
    const rate = catchUp ? CATCH_UP_RATE : lag < this.#lag ? 1 : video.playbackRate;
    if (video.playbackRate !== rate) video.playbackRate = rate;
  }

  #onWaiting() {
    // Playback reached the edge: keep a little more distance from now on.
    if (this.state === 'playing' && document.visibilityState === 'visible') {
      this.#lag = Math.min(MAX_LAG, this.#lag * 1.4);
    }
  }

  /** Removes old data, whole groups of pictures at a time. True while the browser removes. */
  #trim() {
    const buffer = this.#buffer;
    const keys = this.#keyTimes;
    // A browser removes up to the next key frame, so two key frames must lie before the picture on screen.
    while (keys.length > 2 && keys[2] < this.#video.currentTime - 2) keys.shift();
    if (keys.length < 3 || keys[1] > this.#video.currentTime - 2 || buffer.updating) return false;
    const start = buffer.buffered.length > 0 ? buffer.buffered.start(0) : keys[0];
    if (keys[0] - start < 5) return false;
    buffer.remove(0, keys[0]);
    return true;
  }

  /** Checks for problems that no event reports. */
  #watch() {
    const now = performance.now();
    if (this.#socket && now - this.#lastMessageAt > SILENT_MS) void this.#probe();
    if (!this.#buffer) return;
    if (this.#video.paused && document.visibilityState === 'visible' && !this.#video.ended) this.#play();
    const starved = now - this.#lastProgressAt > STARVED_MS && now - this.#lastMessageAt < 1_000;
    if (starved && this.#audio && document.visibilityState === 'visible') {
      this.#audio = false;
      void this.#reconnect();
      return;
    }
    if (!this.#buffer.updating) this.#chase();
    this.#lag = Math.max(MIN_LAG, this.#lag * 0.999);
  }

  /** No data arrive: the camera may send few frames, or the node may have failed without closing the connection. */
  async #probe() {
    if (this.#probing) return;
    this.#probing = true;
    const socket = this.#socket;
    try {
      await fetch(`${this.#base}/api/health/live`, { signal: AbortSignal.timeout(ANSWER_MS) });
      if (socket === this.#socket) this.#lastMessageAt = performance.now();
    } catch {
      // Counted below.
      const isSilent = performance.now() - this.#lastMessageAt > SILENT_MS;
      if (socket === this.#socket && isSilent) this.#retry('lost', 'The connection was lost.');
    } finally {
      this.#probing = false;
    }
  }

  /** The tab was hidden: the browser may have paused the video, and everything in the buffer is old. */
  #wake() {
    if (document.visibilityState !== 'visible' || !this.#buffer) return;
    this.#lastProgressAt = performance.now();
    this.#play();
    if (!this.#buffer.updating) this.#chase();
  }

  #disconnect() {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#buffer = undefined;
    this.#queue = [];
    this.#queuedBytes = 0;
    if (!socket) return;
    socket.onmessage = null;
    socket.onclose = null;
    socket.close();
  }

  #reconnect() {
    this.#disconnect();
    return this.#connect();
  }

  /** Tries again later, with growing delays. */
  #retry(state, message) {
    this.#run++;
    this.#disconnect();
    this.#setState(state, message);
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => void this.#connect(), this.#retryMs * (0.8 + 0.4 * Math.random()));
    const isHurrying = performance.now() - this.#lastPictureAt < HURRY_MS;
    this.#retryMs = Math.min(isHurrying ? HURRY_RETRY_MS : MAX_RETRY_MS, this.#retryMs * 2);
  }
}

/** Of a base URL that may have a path: `https://nvr.example/node/rack-2`. */
function rootOf(base) {
  const { origin, pathname } = new URL(base);
  return origin + pathname.replace(/(?<!\/)\/+$/, '');
}

/** iPhones have ManagedMediaSource only. */
const mediaSourceClass = () => window.MediaSource ?? window.ManagedMediaSource;

function concatenate(parts, size) {
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** The first box named `type` in `view[start, end)`, as the range of its content (ISO/IEC 14496-12 §4.2). */
function findBox(view, start, end, type) {
  for (let at = start; at + 8 <= end;) {
    const size = view.getUint32(at);
    if (size < 8) return undefined;
    if (view.getUint32(at + 4) === type) return { start: at + 8, end: Math.min(end, at + size) };
    at += size;
  }
  return undefined;
}

/** Whether a message is a video fragment that begins with a key frame. */
function isKeyFrame(message) {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const moof = findBox(view, 0, view.byteLength, 0x6d6f6f66);
  const traf = moof && findBox(view, moof.start, moof.end, 0x74726166);
  const tfhd = traf && findBox(view, traf.start, traf.end, 0x74666864);
  const trun = traf && findBox(view, traf.start, traf.end, 0x7472756e);
  if (!tfhd || !trun || view.getUint32(tfhd.start + 4) !== 1) return false;
  // version and flags, sample_count, data_offset, then duration, size and flags of the first sample
  const flagsAt = trun.start + 20;
  return flagsAt + 4 <= trun.end && (view.getUint32(flagsAt) & 0x00010000) === 0;
}
