// Playback as a whole: which moment of which cameras is shown, at which speed, and the selection. One clock leads, and every
// camera follows it.

import { batch, computed, effect, signal, untracked, type Signal } from '@preact/signals';
import type Hls from 'hls.js';
import { api } from '../app/api.ts';
import { now } from '../app/clock.ts';
import { followAddress, go, route } from '../app/router.ts';
import { session } from '../app/session.ts';
import { zone as zoneName } from '../app/shown-zone.ts';
import { addressFields, MAX_CAMERAS, parseAddress } from './address.ts';
import { isPlayable, momentOf, nextFootage, type CameraFootage, type GapSpan, type Moment } from './footage.ts';
import { gapBorder, LEAST_GAP_MS } from './gap-border.ts';
import { MasterClock } from './master-clock.ts';
import { paceOf } from './follow.ts';
import type { Found, Wanted } from './search.ts';
import { nextEvent } from './next-event.ts';
import { CameraPlayer, MAX_VIDEO_SPEED, type PlayerState } from './player.ts';
import { quietUntil } from './quiet.ts';
import { isWithin, rangeAround, reveal, widthOf, zoom, type Range } from './scale.ts';
import { spanAt, type Span } from './spans.ts';
import { StillShow } from './still-show.ts';
import { streamOf, type Stream } from './stream.ts';
import { followFilled, readTimeline, TimelineStore } from './timeline-store.ts';
import { Zone } from './zone.ts';

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64] as const;
const STEP_MS = 100;
const FIRST_WIDTH_MS = 3_600_000;
/** The age of the newest footage that can be played: parts are listed when the next one has begun. */
const LATEST_MS = 12_000;
/** Around the shown moment, footage and gaps are requested with this resolution. */
const NEAR_MS = 10 * 60_000;
const NEAR_RESOLUTION_MS = 100;
const ADDRESS_MS = 400;
/** Before an event begins. */
const EVENT_LEAD_MS = 2_000;
/** Key frames are so far apart: a change may begin before the first one that shows it. */
const QUIET_LEAD_MS = 5_000;
/** What was skipped is said for so long. */
const SKIPPED_MS = 10_000;
/** Changes are searched in so much time at least. */
const SEARCHED_MS = 86_400_000;
/** How far ahead the next footage is searched. */
const SEARCH_MS = 31 * 86_400_000;
const USUAL_FRAME_MS = 40;
const USUAL_ASPECT = 16 / 9;
const STILL_WIDTH = 960;
/** A video that loads for this long is represented by a still. */
const STILL_AFTER_MS = 400;
const LIBRARY_RETRY_MS = 2_000;

/** What the tile of a camera shows. */
type Picture =
  | { readonly kind: 'video' }
  | { readonly kind: 'still' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'plate'; readonly moment: Moment };

export interface Follower {
  readonly cameraId: string;
  readonly picture: Signal<Picture>;
  readonly stills: StillShow;
  /** Shown by its tile. It is made here so that it loads while the page is drawn. */
  readonly video: HTMLVideoElement;
  /** Undefined until the library is there. */
  player: CameraPlayer | undefined;
  /** Since when it has had no picture of its own to show; undefined while it has one. */
  waitsSinceMs: number | undefined;
  /** Streams whose footage this browser could not play. */
  readonly unplayable: Set<Stream>;
}

export class Playback {
  readonly cameras = signal<readonly string[]>([]);
  /** The camera to which keys and single actions apply. */
  readonly focused = signal<string | undefined>(undefined);
  readonly atMs = signal(0);
  readonly range = signal<Range>(rangeAround(0, FIRST_WIDTH_MS));
  readonly isPlaying = signal(false);
  readonly speed = signal(1);
  readonly isScrubbing = signal(false);
  /** Whether the focused camera is heard; the others are silent. */
  readonly isHeard = signal(false);
  readonly inMs = signal<number | undefined>(undefined);
  readonly outMs = signal<number | undefined>(undefined);
  /**
   * Set while every camera is in a gap and the clock is stopped. `nextMs`: where playback can continue; null if nothing
   * follows.
   */
  readonly pause = signal<{ readonly nextMs: number | null | undefined } | undefined>(undefined);
  readonly skipsQuiet = signal(false);
  /** The quiet time that was skipped last. */
  readonly skipped = signal<Span | undefined>(undefined);
  /** The camera and the part of its picture in which changes are searched. */
  readonly search = signal<Wanted | undefined>(undefined);
  readonly found = signal<Found | undefined>(undefined);
  readonly zone = computed(() => new Zone(zoneName.value));
  /** What the timeline shows, the day around the shown moment, and what is needed to play. */
  readonly seen = new TimelineStore('events', 'activity');
  readonly day = new TimelineStore('events');
  readonly near = new TimelineStore();
  readonly dayRange = computed<Range>(() => {
    const { startMs, endMs } = this.zone.value.dayOf(this.#dayMs.value);
    return { fromMs: startMs, toMs: endMs };
  });
  readonly selection = computed<Span | undefined>(() => {
    const [start, end] = [this.inMs.value, this.outMs.value];
    return start !== undefined && end !== undefined && start < end ? { startMs: start, endMs: end } : undefined;
  });
  readonly followers = signal<readonly Follower[]>([]);
  /** The frame rate of the footage that was played last. */
  frameMs = USUAL_FRAME_MS;
  readonly #dayMs = signal(0);
  readonly #clock = new MasterClock(() => performance.now(), 0);
  /** Of the chosen speed, the share that the computer keeps up with. */
  #pace = 1;
  #hasEnded = false;
  readonly #library = loadLibrary(() => this.#hasEnded);
  #ends: (() => void)[] = [];
  #written = '';
  #addressTimer: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;
  #timelineWidth = 1000;
  /** It was playing when the page was hidden. */
  #playsWhenSeen = false;

  /** Until `end`. */
  begin(): void {
    this.#written = route.peek().params.toString();
    const address = parseAddress(route.peek().params);
    const atMs = address.atMs ?? now() - LATEST_MS;
    batch(() => {
      this.select(address.cameras);
      this.inMs.value = address.inMs;
      this.outMs.value = address.outMs;
      this.range.value = rangeAround(atMs, address.widthMs ?? FIRST_WIDTH_MS, address.atMs === undefined ? 0.9 : 0.5);
      this.seek(atMs);
    });
    this.#ends = [effect(() => this.#followAddress()), effect(() => this.#writeAddress()), effect(() => this.#ask())];
    const timer = setInterval(() => this.#step(), STEP_MS);
    const onVisibility = (): void => this.#setSeen(!document.hidden);
    document.addEventListener('visibilitychange', onVisibility);
    this.#ends.push(() => document.removeEventListener('visibilitychange', onVisibility));
    this.#ends.push(followFilled([this.seen, this.day, this.near]));
    const onFrame = (): void => {
      this.#show();
      this.#frame = requestAnimationFrame(onFrame);
    };
    onFrame();
    this.#ends.push(() => {
      clearInterval(timer);
      cancelAnimationFrame(this.#frame);
      clearTimeout(this.#addressTimer);
    });
  }

  end(): void {
    this.#hasEnded = true;
    for (const end of this.#ends) end();
    for (const follower of this.followers.peek()) endFollower(follower);
    for (const store of [this.seen, this.day, this.near]) store.stop();
  }

  /** The resolution for the timeline: one pixel. */
  set timelineWidth(pixels: number) {
    this.#timelineWidth = Math.max(100, pixels);
  }

  /** The cameras that are shown: at most nine. */
  select(cameraIds: readonly string[]): void {
    const wanted = [...new Set(cameraIds)].slice(0, MAX_CAMERAS);
    const before = new Map(this.followers.peek().map((follower) => [follower.cameraId, follower]));
    for (const [id, follower] of before) if (!wanted.includes(id)) endFollower(follower);
    batch(() => {
      this.cameras.value = wanted;
      this.followers.value = wanted.map((cameraId) => before.get(cameraId) ?? this.#newFollower(cameraId));
      const focused = this.focused.peek();
      if (focused === undefined || !wanted.includes(focused)) this.focused.value = wanted[0];
      if (!wanted.includes(this.search.peek()?.cameraId ?? '')) this.search.value = undefined;
    });
    void this.#makePlayers();
  }

  toggle(cameraId: string): void {
    const shown = this.cameras.peek();
    if (shown.includes(cameraId)) this.select(shown.filter((id) => id !== cameraId));
    else this.select([...shown.slice(0, MAX_CAMERAS - 1), cameraId]);
    if (this.cameras.peek().includes(cameraId)) this.focused.value = cameraId;
  }

  async #makePlayers(): Promise<void> {
    const Library = await this.#library;
    if (!Library || this.#hasEnded) return;
    const onFailure = (): void => {
      for (const store of [this.near, this.seen]) store.refresh();
    };
    for (const follower of this.followers.peek()) {
      follower.player ??= new CameraPlayer(follower.cameraId, follower.video, Library, onFailure);
    }
    this.#step();
  }

  #newFollower(cameraId: string): Follower {
    const video = document.createElement('video');
    video.muted = true;
    video.playsInline = true;
    watchFrames(video, (frameMs) => (this.frameMs = frameMs));
    // Its picture is shown at once, not with the next step.
    for (const type of ['loadeddata', 'seeked']) video.addEventListener(type, () => this.#step());
    return {
      cameraId,
      picture: signal<Picture>({ kind: 'loading' }),
      stills: new StillShow(cameraId, STILL_WIDTH),
      video,
      player: undefined,
      waitsSinceMs: undefined,
      unplayable: new Set(),
    };
  }

  /** Shows a moment; `reveals`: the timeline moves so that the moment is visible. */
  seek(atMs: number, { reveals = true } = {}): void {
    const latestMs = now() - LATEST_MS;
    const wanted = Math.round(Math.min(atMs, latestMs));
    this.#clock.set({ atMs: wanted, isRunning: false });
    batch(() => {
      this.atMs.value = wanted;
      this.pause.value = undefined;
      this.#showDay();
      if (reveals) this.range.value = reveal(this.range.peek(), wanted);
    });
    this.#step();
  }

  move(byMs: number): void {
    this.seek(this.#clock.atMs + byMs);
  }

  /** Pauses, and moves by one picture. */
  stepFrame(direction: 1 | -1): void {
    this.setPlaying(false);
    this.move(direction * this.frameMs);
  }

  setPlaying(playing: boolean): void {
    if (playing && this.speed.peek() < 0 && !this.isPlaying.peek()) this.setSpeed(1);
    this.isPlaying.value = playing;
    if (!playing) {
      this.#clock.set({ isRunning: false });
      this.atMs.value = Math.round(this.#clock.atMs);
      this.#clock.set({ atMs: this.atMs.peek() });
      this.pause.value = undefined;
    }
    this.#step();
  }

  setSpeed(speed: number): void {
    this.speed.value = speed;
    this.#pace = 1;
    this.#clock.set({ speed });
    for (const { player } of this.followers.peek()) player?.setSpeed(Math.abs(speed));
    this.#step();
  }

  /** Plays faster in one direction with each press, as editors do. */
  shuttle(direction: 1 | -1): void {
    const speed = this.speed.peek();
    const isSame = this.isPlaying.peek() && Math.sign(speed) === direction;
    const next = isSame ? (SPEEDS.find((one) => one > Math.abs(speed)) ?? Math.abs(speed)) : 1;
    this.setSpeed(direction * next);
    this.isPlaying.value = true;
    this.#step();
  }

  scrub(atMs: number): void {
    this.isScrubbing.value = true;
    this.seek(atMs, { reveals: false });
  }

  endScrub(): void {
    this.isScrubbing.value = false;
    this.#step();
  }

  zoomBy(factor: number, atMs = this.#zoomCentre()): void {
    this.range.value = zoom(this.range.peek(), factor, atMs);
  }

  setWidth(widthMs: number): void {
    const atMs = this.atMs.peek();
    const range = this.range.peek();
    const share = isWithin(range, atMs) ? (atMs - range.fromMs) / widthOf(range) : 0.5;
    this.range.value = rangeAround(atMs, widthMs, share);
  }

  /** Jumps to the border of a gap; also searches outside the shown range. */
  async goToGap(direction: 1 | -1): Promise<void> {
    const atMs = this.atMs.peek();
    const nowMs = now();
    const seen = this.seen.loaded.peek();
    const read = async (range: Range): Promise<readonly GapSpan[]> =>
      range.toMs - range.fromMs < LEAST_GAP_MS
        ? []
        : gapsOf(await readTimeline({ cameras: this.cameras.peek(), range, resolutionMs: LEAST_GAP_MS }));
    const end = direction > 0 ? Math.min(nowMs, atMs + SEARCH_MS) : Math.max(0, atMs - SEARCH_MS);
    const known = seen && { range: seen.range, gaps: gapsOf(seen.byCamera) };
    const border = await gapBorder(atMs, end, { known, read });
    if (border !== undefined && border < nowMs - LATEST_MS) this.seek(border);
  }

  /** Jumps to an event, also outside the shown range. */
  async goToEvent(direction: 1 | -1): Promise<void> {
    const cameras = this.cameras.peek();
    if (cameras.length === 0) return;
    const startMs = await nextEvent(this.atMs.peek() + EVENT_LEAD_MS, direction, now(), async (fromMs, toMs, limit) => {
      const query = new URLSearchParams(cameras.map((id) => ['camera', id] as [string, string]));
      for (const [name, value] of Object.entries({ from: fromMs / 1000, to: toMs / 1000, limit }))
        query.set(name, String(value));
      const answer = await api<{ readonly events: readonly { readonly start_ms: number }[] }>(
        `/api/events/search?scope=cluster&${query.toString()}`,
      );
      return answer.events.map(({ start_ms }) => start_ms);
    });
    if (startMs !== undefined) this.seekEvent(startMs);
  }

  /** A little before the event, so that it is seen to begin. */
  seekEvent(startMs: number): void {
    this.seek(startMs - EVENT_LEAD_MS);
  }

  /** Jumps to the next footage when all cameras are in a gap. */
  skip(): void {
    const nextMs = this.pause.peek()?.nextMs;
    if (nextMs) this.seek(nextMs);
  }

  /** Only then is it needed what is quiet near the shown moment. */
  toggleSkip(): void {
    const skips = !this.skipsQuiet.peek();
    this.skipsQuiet.value = skips;
    this.near.also = skips ? ['events', 'activity'] : [];
    this.near.refresh();
  }

  /** Begins or ends the search for changes in the picture of the focused camera. */
  toggleSearch(): void {
    const cameraId = this.focused.peek();
    this.search.value = this.search.peek() || cameraId === undefined ? undefined : { cameraId, region: undefined };
    if (this.search.peek() && widthOf(this.range.peek()) < SEARCHED_MS) this.setWidth(SEARCHED_MS);
  }

  mark(which: 'in' | 'out'): void {
    const atMs = this.atMs.peek();
    if (which === 'in') {
      this.inMs.value = atMs;
      if ((this.outMs.peek() ?? Infinity) <= atMs) this.outMs.value = undefined;
    } else {
      this.outMs.value = atMs;
      if ((this.inMs.peek() ?? -Infinity) >= atMs) this.inMs.value = undefined;
    }
  }

  /** What a camera has at the shown moment; undefined until it is known. */
  momentOf(cameraId: string, atMs = this.#clock.atMs): Moment | undefined {
    const loaded = this.near.loaded.peek();
    const camera = loaded?.byCamera.get(cameraId);
    if (!loaded || !camera || atMs < loaded.range.fromMs || atMs >= loaded.range.toMs) return undefined;
    const nowMs = now();
    const moment = momentOf(camera, atMs, nowMs);
    if (atMs < loaded.atMs - LATEST_MS || moment.kind === 'footage') return moment;
    // The footage was written after the answer. A gap says that there is none, but does not say it of the preview.
    const before = momentOf(camera, loaded.atMs - LATEST_MS - 1, nowMs);
    const isNewer = before.kind === 'preview' || (isPlayable(before) && moment.kind !== 'gap');
    return isNewer ? before : moment;
  }

  /** Which stream shows a moment of a camera that has something to play then. */
  #streamOf({ cameraId, video, unplayable }: Follower, moment: Moment | undefined, atMs: number): Stream {
    const loaded = this.near.loaded.peek();
    const preview = loaded?.byCamera.get(cameraId)?.preview ?? [];
    const tile = video.closest('.ptile');
    const aspect = video.videoHeight > 0 ? video.videoWidth / video.videoHeight : USUAL_ASPECT;
    return streamOf({
      hasMain: moment?.kind !== 'preview',
      hasPreview: loaded !== undefined && spanAt(preview, Math.min(atMs, loaded.atMs - LATEST_MS - 1)) !== undefined,
      unplayable,
      // There are borders beside a picture that is not as wide as its tile.
      width: tile ? Math.min(tile.clientWidth, tile.clientHeight * aspect) : 0,
    });
  }

  #zoomCentre(): number {
    const range = this.range.peek();
    const atMs = this.atMs.peek();
    return isWithin(range, atMs) ? atMs : (range.fromMs + range.toMs) / 2;
  }

  #showDay(): void {
    const atMs = this.atMs.peek();
    const { fromMs, toMs } = this.dayRange.peek();
    if (atMs < fromMs || atMs >= toMs) this.#dayMs.value = atMs;
  }

  /** Runs before each repaint. */
  #show(): void {
    if (!this.#clock.isRunning) return;
    const atMs = this.#clock.atMs;
    batch(() => {
      this.atMs.value = atMs;
      this.#showDay();
      const range = this.range.peek();
      // If the user has moved the timeline away, it stays there.
      if (atMs > range.toMs - widthOf(range) * 0.02 && atMs < range.toMs + widthOf(range) * 0.02) {
        this.range.value = rangeAround(atMs, widthOf(range), 0.1);
      }
    });
  }

  /** A hidden page pauses, and plays on when it is seen again. */
  #setSeen(isSeen: boolean): void {
    if (!isSeen && this.isPlaying.peek()) {
      this.#playsWhenSeen = true;
      this.setPlaying(false);
    }
    for (const { player } of this.followers.peek()) player?.setSeen(isSeen);
    if (!isSeen) return;
    if (this.#playsWhenSeen) this.setPlaying(true);
    this.#playsWhenSeen = false;
    this.#step();
  }

  /** Makes all cameras follow, and stops or starts the clock. */
  #step(): void {
    if (document.hidden || this.#hasEnded) return;
    const speed = this.speed.peek();
    const atMs = this.#clock.atMs;
    const followers = this.followers.peek();
    const isPlaying = this.isPlaying.peek() && !this.isScrubbing.peek() && followers.length > 0;
    if (isPlaying && speed > 0 && this.#skipQuiet(atMs)) return;
    const moments = followers.map(({ cameraId }) => this.momentOf(cameraId, atMs));
    const areStills = this.isScrubbing.peek() || (this.isPlaying.peek() && (speed < 0 || speed > MAX_VIDEO_SPEED));
    const allMissing = followers.length > 0 && moments.every((moment) => moment !== undefined && !isPlayable(moment));
    const isWaiting = !areStills && !isAnyReady(followers, moments);
    const isAtEnd = speed > 0 && atMs >= now() - LATEST_MS;
    this.#pace = areStills ? 1 : paceOf(this.#pace, lagOf(followers, moments, atMs), speed);
    this.#clock.set({ isRunning: isPlaying && !allMissing && !isWaiting && !isAtEnd, speed: speed * this.#pace });
    if (isPlaying && allMissing) this.#offerSkip(atMs);
    else if (this.pause.peek()) this.pause.value = undefined;
    for (const [i, follower] of followers.entries()) this.#lead(follower, moments[i], areStills);
    this.#ask();
  }

  #lead(follower: Follower, moment: Moment | undefined, areStills: boolean): void {
    const { player, stills, picture } = follower;
    const { atMs, isRunning, speed } = this.#clock;
    if (moment !== undefined && !isPlayable(moment)) {
      player?.rest();
      stills.clear();
      setPicture(picture, { kind: 'plate', moment });
      return;
    }
    if (player?.state.peek() === 'unplayable') follower.unplayable.add(player.stream.peek());
    player?.use(this.#streamOf(follower, moment, atMs));
    const ofStills = moment?.kind === 'preview' ? 'preview' : 'main';
    const isUnplayable = player?.isGivenUp === true;
    // If the recorder makes no pictures, the video seeks as fast as it can.
    if (isUnplayable || (areStills && stills.isAvailable)) {
      player?.rest();
      // Without stills there is one picture a second.
      stills.show(areStills ? atMs : Math.floor(atMs / 1000) * 1000, ofStills);
      setPicture(picture, { kind: 'still' });
      return;
    }
    player?.follow({ atMs, isRunning: isRunning && !areStills, speed });
    const state: PlayerState = player?.state.peek() ?? 'idle';
    const hasPicture = state === 'ready' && player?.shownMs !== undefined && (areStills || !player.video.seeking);
    if (hasPicture) {
      follower.waitsSinceMs = undefined;
      setPicture(picture, { kind: 'video' });
      stills.clear();
    } else if (picture.peek().kind !== 'video' || state === 'loading') {
      follower.waitsSinceMs ??= performance.now();
      // Until the video has a picture. The recorder decodes for each still, so a video that comes soon is not delayed by one.
      const isLate = performance.now() - follower.waitsSinceMs > STILL_AFTER_MS;
      if (moment && !isRunning && isLate) stills.show(atMs, ofStills);
      setPicture(picture, stills.shown.peek() ? { kind: 'still' } : { kind: 'loading' });
    }
  }

  /** Whether it has gone on to where something may happen, or to the end of what is known. */
  #skipQuiet(atMs: number): boolean {
    const skipped = this.skipped.peek();
    if (skipped && (atMs > skipped.endMs + SKIPPED_MS || atMs < skipped.startMs)) this.skipped.value = undefined;
    const byCamera = this.near.loaded.peek()?.byCamera;
    const cameras = this.cameras.peek().map((id) => byCamera?.get(id));
    if (!this.skipsQuiet.peek() || !cameras.every((camera) => camera !== undefined)) return false;
    const toMs = (quietUntil(cameras, atMs) ?? atMs) - QUIET_LEAD_MS;
    if (toMs <= atMs + QUIET_LEAD_MS) return false;
    const isMore = skipped && atMs - skipped.endMs < SKIPPED_MS;
    this.skipped.value = { startMs: isMore ? skipped.startMs : atMs, endMs: toMs };
    this.seek(toMs);
    return true;
  }

  #offerSkip(atMs: number): void {
    if (this.pause.peek()) return;
    const cameras = this.cameras.peek().flatMap((id) => this.near.loaded.peek()?.byCamera.get(id) ?? []);
    const nextMs = nextFootage(cameras, atMs);
    this.pause.value = { nextMs };
    if (nextMs === undefined) void this.#findFootage(atMs);
  }

  async #findFootage(atMs: number): Promise<void> {
    const range = { fromMs: Math.floor(atMs), toMs: Math.ceil(Math.min(now(), atMs + SEARCH_MS)) };
    let nextMs: number | undefined;
    if (range.toMs > range.fromMs) {
      const found = await readTimeline({ cameras: this.cameras.peek(), range, resolutionMs: NEAR_RESOLUTION_MS }).catch(
        () => undefined,
      );
      nextMs = found && nextFootage([...found.values()], atMs);
    }
    if (this.pause.peek() && this.#clock.atMs === atMs) this.pause.value = { nextMs: nextMs ?? null };
  }

  /** Requests the data that is needed now. */
  #ask(): void {
    const cameras = this.cameras.value;
    const range = this.range.value;
    const day = this.dayRange.value;
    if (cameras.length === 0) return;
    this.seen.want({ cameras, range, resolutionMs: (widthOf(range) / this.#timelineWidth) * 2 });
    this.day.want({ cameras, range: day, resolutionMs: (widthOf(day) / this.#timelineWidth) * 2 });
    const atMs = this.#clock.atMs;
    const near = { fromMs: atMs - NEAR_MS, toMs: atMs + NEAR_MS };
    const loaded = this.near.loaded.peek();
    const isInside = loaded && atMs > loaded.range.fromMs + NEAR_MS / 2 && atMs < loaded.range.toMs - NEAR_MS / 2;
    this.near.want({
      cameras,
      range: isInside ? { fromMs: atMs, toMs: atMs + 1 } : near,
      resolutionMs: NEAR_RESOLUTION_MS,
    });
  }

  /** Follows the browser's back and forward buttons, and links. */
  #followAddress(): void {
    const { view, params } = route.value;
    if (view !== 'playback' || params.toString() === this.#written) return;
    this.#written = params.toString();
    const address = parseAddress(params);
    untracked(() => {
      if (address.cameras.length > 0) this.select(address.cameras);
      if (address.widthMs !== undefined) this.setWidth(address.widthMs);
      this.inMs.value = address.inMs;
      this.outMs.value = address.outMs;
      if (address.atMs !== undefined) this.seek(address.atMs);
    });
  }

  #writeAddress(): void {
    const fields = addressFields(
      {
        cameras: this.cameras.value,
        // During playback the address is not written, because it would change all the time.
        atMs: this.isPlaying.value ? Math.round(this.atMs.peek()) : this.atMs.value,
        widthMs: widthOf(this.range.value),
        inMs: this.inMs.value,
        outMs: this.outMs.value,
      },
      this.zone.value,
    );
    clearTimeout(this.#addressTimer);
    this.#addressTimer = setTimeout(() => {
      const before = route.peek();
      followAddress();
      // The user has just opened another address, which must not be overwritten.
      if (route.peek() !== before) return;
      if (route.peek().view !== 'playback' || !session.peek()) return;
      const set = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined);
      const written = new URLSearchParams(set).toString();
      if (written === this.#written) return;
      this.#written = written;
      go('playback', fields, { replace: true });
    }, ADDRESS_MS);
  }
}

const gapsOf = (cameras: ReadonlyMap<string, CameraFootage>): readonly GapSpan[] =>
  [...cameras.values()].flatMap(({ gaps }) => gaps);

/** Tries until it is there; undefined if it is no longer needed. */
async function loadLibrary(isOver: () => boolean): Promise<typeof Hls | undefined> {
  while (!isOver()) {
    try {
      return (await import('hls.js')).default;
    } catch {
      // Tried again.
      await new Promise((resolve) => setTimeout(resolve, LIBRARY_RETRY_MS));
    }
  }
  return undefined;
}

function endFollower({ player, stills }: Follower): void {
  player?.destroy();
  stills.end();
}

/** Whether the clock may run: a camera that plays can continue. The others catch up. */
function isAnyReady(followers: readonly Follower[], moments: readonly (Moment | undefined)[]): boolean {
  const playable = followers.filter((_, i) => moments[i] === undefined || isPlayable(moments[i]));
  return playable.some(({ player }) => player?.isReady || player?.state.peek() === 'unplayable');
}

/** How far the slowest video that plays is behind the clock, in wall time. */
const lagOf = (followers: readonly Follower[], moments: readonly (Moment | undefined)[], atMs: number): number =>
  Math.max(
    0,
    ...followers.map(({ player }, i) =>
      player?.isReady && isPlayable(moments[i]) ? atMs - (player.shownMs ?? atMs) : 0,
    ),
  );

function setPicture(picture: Signal<Picture>, next: Picture): void {
  const before = picture.peek();
  if (before.kind === next.kind && (next.kind !== 'plate' || isSamePlate(before, next))) return;
  picture.value = next;
}

const isSamePlate = (a: Picture, b: Picture): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Measures the duration of a picture during playback. */
function watchFrames(video: HTMLVideoElement, learn: (frameMs: number) => void): void {
  if (!('requestVideoFrameCallback' in video)) return;
  let before: VideoFrameCallbackMetadata | undefined;
  const onFrame = (_now: number, frame: VideoFrameCallbackMetadata): void => {
    const frames = before ? frame.presentedFrames - before.presentedFrames : 0;
    const ms = before ? (frame.mediaTime - before.mediaTime) * 1000 : 0;
    if (frames === 1 && ms > 5 && ms < 1_000) learn(ms);
    before = frame;
    video.requestVideoFrameCallback(onFrame);
  };
  video.requestVideoFrameCallback(onFrame);
}
