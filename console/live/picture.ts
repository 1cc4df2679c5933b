// The picture of a camera: its live stream, or stills of it where the browser cannot decode the stream.

import { signal } from '@preact/signals';
import type { RefObject, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem, request } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';
import { directory } from '../app/cameras.ts';
import { codecName } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { drawVisible } from '../parts/zoom.ts';
import { LivePlayer } from '../player.js';
import { qualityOf, type Place } from './quality.ts';

export interface PictureState {
  /** As of the player, and `stills`. */
  readonly kind:
    'connecting' | 'playing' | 'offline' | 'lost' | 'unsupported' | 'refused' | 'unknown' | 'stopped' | 'stills';
  /** The text to show in place of the picture. */
  readonly message: string;
  /** Seconds without a new picture although the stream is open; 0 while there are some. */
  readonly frozenSeconds: number;
}

/** The only camera whose sound is on; undefined: none. */
export const audible = signal<string | undefined>(undefined);

/** Whether the page is visible: hidden pages request no pictures. */
const isSeen = signal(!document.hidden);
document.addEventListener('visibilitychange', () => (isSeen.value = !document.hidden));

const FROZEN_MS = 2_000;
const LOOK_MS = 500;
const STILL_MS = 1_000;
/** A past picture does not change: it is requested again only while the recorder could not make it. */
const PAST_RETRY_MS = 5_000;

/** States of a camera in which there is no live picture. */
const DARK: ReadonlySet<Camera['state']> = new Set(['stopped', 'unassigned']);

/** For so long, the first picture of the page has the link to itself: over a slow one, sixteen at once would all be late. */
const ALONE_MS = 1_500;
let first: { readonly over: Promise<void>; readonly end: () => void } | undefined;

/** Starts a player at once if it is the first one of the page, and the others after its first picture. */
function inTurn(player: LivePlayer): () => void {
  let isEnded = false;
  if (first) void first.over.then(() => isEnded || player.start());
  else {
    const { promise, resolve } = Promise.withResolvers<void>();
    first = { over: promise, end: resolve };
    setTimeout(resolve, ALONE_MS);
    player.start();
  }
  return () => {
    isEnded = true;
    first?.end();
  };
}

const START: PictureState = { kind: 'connecting', message: '', frozenSeconds: 0 };

const MediaSourceClass =
  window.MediaSource ?? (window as { ManagedMediaSource?: typeof MediaSource }).ManagedMediaSource;
const canPlay = ({ codec_string }: { readonly codec_string: string }): boolean =>
  MediaSourceClass?.isTypeSupported(`video/mp4; codecs="${codec_string}"`) ?? false;

/** States of a player in which its stream is of no use to this picture. */
const UNUSABLE: ReadonlySet<PictureState['kind']> = new Set(['offline', 'unsupported']);

/** Plays the camera in the video element while the component is shown, from the stream that suits the place. */
export function usePlayer(
  camera: Camera,
  video: RefObject<HTMLVideoElement | null>,
  place: Place,
): { readonly picture: PictureState; readonly player: LivePlayer | undefined } {
  const [picture, setPicture] = useState(START);
  const [player, setPlayer] = useState<LivePlayer>();
  const [isPreviewBroken, setPreviewBroken] = useState(false);
  const { id, state, base } = camera;
  const places = directory.value;
  // The list of cameras shows when the camera sends again. In a cluster another node may record it by now: the player looks there.
  const isWanted = isSeen.value && (places ? !DARK.has(state) : state === 'recording');
  const quality = qualityOf(camera, place, { canPlay, isPreviewBroken, isHeard: audible.value === id });
  // For `stills`, the player says what this browser cannot decode.
  const isPreview = quality === 'preview';
  // A preview that fails is not tried again while the picture is watched, which would interrupt it again and again.
  const previewState = camera.preview?.state;
  useEffect(() => setPreviewBroken(false), [id]);
  useEffect(() => {
    if (!isWanted || previewState === 'live') setPreviewBroken(false);
  }, [isWanted, previewState]);
  useEffect(() => {
    const element = video.current;
    if (!isWanted || !element) return undefined;
    const made = new LivePlayer(element, {
      cameraId: id,
      ...(isPreview ? { quality: 'preview' as const } : {}),
      ...(places ? { locate: () => places.locate(id) } : {}),
    });
    const onState = ({ detail }: CustomEvent<{ state: PictureState['kind']; message: string }>): void => {
      if (detail.state !== 'connecting') first?.end();
      if (isPreview && UNUSABLE.has(detail.state)) setPreviewBroken(true);
      else setPicture({ kind: detail.state, message: detail.message, frozenSeconds: 0 });
    };
    made.addEventListener('state', onState as EventListener);
    const leave = inTurn(made);
    setPlayer(made);
    const ends = watchFrames(
      element,
      () => made.state === 'playing',
      (frozenSeconds) =>
        setPicture((before) => (before.frozenSeconds === frozenSeconds ? before : { ...before, frozenSeconds })),
    );
    return () => {
      ends();
      leave();
      made.removeEventListener('state', onState as EventListener);
      made.stop();
      setPlayer(undefined);
      setPicture(START);
    };
  }, [id, isWanted, places, isPreview]);
  useEffect(() => player?.moved(base), [player, base]);
  return { picture, player };
}

/** Reports for how long no new picture has arrived. A camera with a low frame rate is allowed three of its usual intervals. */
function watchFrames(video: HTMLVideoElement, isOpen: () => boolean, tell: (seconds: number) => void): () => void {
  let frames = -1;
  let lastMs = performance.now();
  let pauseMs = 0;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const seen = video.getVideoPlaybackQuality().totalVideoFrames;
    if (!isOpen() || seen !== frames) {
      if (frames >= 0 && seen > frames) pauseMs = Math.max((nowMs - lastMs) / (seen - frames), pauseMs * 0.9);
      frames = seen;
      lastMs = nowMs;
    }
    const silentMs = nowMs - lastMs;
    tell(silentMs > Math.max(FROZEN_MS, 3 * pauseMs) ? Math.floor(silentMs / 1000) : 0);
  }, LOOK_MS);
  return () => clearInterval(timer);
}

interface StillsProps {
  readonly camera: Camera;
  /** The newest recorded picture, for a camera that sends none now. */
  readonly isPast?: boolean;
  /** Shown while there is no picture. */
  readonly message?: string;
}

/** Shows key frames of a camera whose stream the browser cannot decode. The recorder says for how long each is the newest. */
export function Stills({ camera, isPast = false, message = '' }: StillsProps): VNode {
  const [source, setSource] = useState<string>();
  const { id, base } = camera;
  const isWanted = isSeen.value && base !== undefined;
  useEffect(() => {
    if (!isWanted) return undefined;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let shown: string | undefined;
    let isMissing = false;
    const load = async (): Promise<void> => {
      try {
        const path = `/api/cameras/${encodeURIComponent(id)}/thumbnail${isPast ? '' : '?fresh=1'}`;
        const image = await (await request(path, { base, signal: abort.signal })).blob();
        if (abort.signal.aborted) return;
        const before = shown;
        shown = URL.createObjectURL(image);
        isMissing = false;
        setSource(shown);
        if (before) URL.revokeObjectURL(before);
      } catch (error) {
        // The previous picture stays; the camera's state shows what is wrong.
        if (isPast) isMissing = !(error instanceof Problem) || error.status >= 500;
      }
      if (abort.signal.aborted) return;
      if (!isPast) timer = setTimeout(() => void load(), STILL_MS);
      else if (isMissing) timer = setTimeout(() => void load(), PAST_RETRY_MS);
    };
    void load();
    return () => {
      abort.abort();
      clearTimeout(timer);
      if (shown) URL.revokeObjectURL(shown);
      setSource(undefined);
    };
  }, [id, base, isWanted, isPast]);
  return html`
    ${source && html`<img class=${`picture ${isPast ? 'past' : ''}`} src=${source} alt=${`Newest picture of ${camera.name}`} />`}
    ${!source && message !== '' && html`<p class="notice">${message}</p>`}
  `;
}

/** Why a camera is shown as stills, such as `Stills (H.265)`. */
export const stillsWords = ({ codecs }: Camera): string =>
  codecs.video ? `Stills (${codecName(codecs.video.codec)})` : 'Stills';

/** Saves the picture on screen as a file. */
export function downloadStill(camera: Camera, screen: HTMLElement | null, timeMs: number): void {
  const video = screen?.querySelector<HTMLVideoElement>('.replay video') ?? screen?.querySelector('video');
  const image = screen?.querySelector('img');
  const source = video && video.videoWidth > 0 ? video : image;
  if (!source) return;
  const size =
    source instanceof HTMLVideoElement
      ? { width: source.videoWidth, height: source.videoHeight }
      : { width: source.naturalWidth, height: source.naturalHeight };
  const canvas = drawVisible(source, size, screen);
  const stamp = new Date(timeMs).toISOString().slice(0, 19).replaceAll(':', '-');
  canvas.toBlob(
    (blob) => {
      if (!blob) return;
      const link = document.createElement('a');
      link.href = URL.createObjectURL(blob);
      // Cameras may have one name.
      link.download = `${[...new Set([camera.name, camera.id])].join(' ')} ${stamp}Z.jpg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    },
    'image/jpeg',
    0.92,
  );
}
