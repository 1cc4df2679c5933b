// The viewers of one live stream: sends them what the side that records sends of it. Recording never waits for a viewer.

import type { Clock, Timer } from '../../base/clock.ts';
import type { LiveNews, LiveStart } from '../contract/live-feed.ts';
import { CLOSE } from './close.ts';
import type { LiveLimits } from './limits.ts';
import { LiveMessage } from './message.ts';
import { Viewer, type ViewerOptions, type ViewerSocket } from './viewer.ts';

interface LiveHubOptions {
  readonly limits: LiveLimits;
  /** Asks for the stream, which `hear` is called with from then on; called again for each new viewer. */
  readonly watch: () => void;
  readonly unwatch: () => void;
  readonly clock: Clock;
}

/** Counts since the start, for metrics. */
export interface LiveStats {
  readonly viewers: number;
  readonly sentBytes: number;
  /** Video frames that viewers missed because their connection was too slow or because they waited for a key frame. */
  readonly droppedFrames: number;
}

export class LiveHub {
  readonly #options: LiveHubOptions;
  readonly #viewers = new Set<Viewer>();
  /** Viewers that wait for the answer, and those that get what follows it. */
  #joining = new Set<Viewer>();
  #starting = new Set<Viewer>();
  #hasStream = false;
  #isWatching = false;
  #offlineTimer: Timer | undefined;
  #goneSentBytes = 0;
  #goneDroppedFrames = 0;

  constructor(options: LiveHubOptions) {
    this.#options = options;
  }

  get stats(): LiveStats {
    let sentBytes = this.#goneSentBytes;
    let droppedFrames = this.#goneDroppedFrames;
    for (const viewer of this.#viewers) {
      sentBytes += viewer.sentBytes;
      droppedFrames += viewer.droppedFrames;
    }
    return { viewers: this.#viewers.size, sentBytes, droppedFrames };
  }

  /**
   * Adds a viewer; it gets a picture as soon as there is one. Call `remove` when its connection has closed. Undefined if it was
   * refused with a close code.
   */
  add(socket: ViewerSocket, options: ViewerOptions = { audio: true }): Viewer | undefined {
    const { limits, watch } = this.#options;
    const viewer = new Viewer(socket, options, limits.maxViewerBytes, limits.viewerMemory);
    const refusal = limits.addViewer(viewer, this.#viewers);
    if (refusal !== undefined) {
      socket.close(CLOSE.tooManyViewers, refusal);
      return undefined;
    }
    this.#viewers.add(viewer);
    this.#joining.add(viewer);
    if (!this.#hasStream) this.#awaitStream();
    this.#isWatching = true;
    watch();
    return viewer;
  }

  remove(viewer: Viewer): void {
    viewer.gone();
    if (!this.#viewers.delete(viewer)) return;
    this.#joining.delete(viewer);
    this.#starting.delete(viewer);
    this.#goneSentBytes += viewer.sentBytes;
    this.#goneDroppedFrames += viewer.droppedFrames;
    this.#options.limits.removeViewer(viewer);
    if (this.#viewers.size > 0) return;
    this.#cancelOfflineTimer();
    this.#hasStream = false;
    if (this.#isWatching) this.#options.unwatch();
    this.#isWatching = false;
  }

  hear(news: LiveNews): void {
    switch (news.kind) {
      case 'start':
        return this.#start(news, news);
      case 'end':
        this.#hasStream = false;
        if (this.#viewers.size > 0) this.#awaitStream();
        return undefined;
      case 'closed':
        this.#isWatching = false;
        this.#hasStream = false;
        return this.#closeViewers(news.code, news.reason);
      default: {
        const message = new LiveMessage(news.kind, news.bytes);
        const nowMs = this.#options.clock.monotonicMs();
        if (!news.isCached && this.#starting.size > 0) this.#starting = new Set();
        for (const viewer of news.isCached ? this.#starting : this.#viewers)
          if (!this.#joining.has(viewer)) viewer.push(message, nowMs);
      }
    }
  }

  /** Those that wait for an answer are no worse off with a stream that begins now. */
  #start({ all, leadOnly }: LiveStart, { isAnswer, cachedBytes }: { isAnswer: boolean; cachedBytes: number }): void {
    this.#hasStream = true;
    this.#cancelOfflineTimer();
    this.#starting = isAnswer ? this.#joining : new Set();
    this.#joining = new Set();
    for (const viewer of isAnswer ? this.#starting : this.#viewers)
      viewer.start(viewer.audio ? all : leadOnly, cachedBytes);
  }

  #awaitStream(): void {
    this.#offlineTimer ??= this.#options.clock.after(this.#options.limits.offlineWaitMs, () =>
      this.#closeViewers(CLOSE.offline, 'the camera is offline'),
    );
  }

  #cancelOfflineTimer(): void {
    this.#offlineTimer?.cancel();
    this.#offlineTimer = undefined;
  }

  #closeViewers(code: number, reason: string): void {
    this.#cancelOfflineTimer();
    for (const viewer of this.#viewers) viewer.close(code, reason);
  }
}
