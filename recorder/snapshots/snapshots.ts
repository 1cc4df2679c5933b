// Still images made by cameras: fetches the image at a camera's snapshot address. One request to the camera serves all callers at
// the same time and shortly after.

import type { Agent } from 'undici';
import type { Clock } from '../../base/clock.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import type { CameraTls } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import { Login } from '../rtsp/login.ts';
import { isSameHost, type Origin } from '../rtsp/origin.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import { StillError } from './error.ts';
import { fetchImage, openAgent, type FetchedImage } from './fetch-image.ts';
import { SharedImages, type StillImage } from './shared-images.ts';

/** The configuration of a camera; the addresses may contain passwords. */
interface SnapshotSource {
  readonly source: string;
  readonly snapshot: string | undefined;
  readonly tls: CameraTls;
  readonly allowPlaintextLogin?: boolean;
}

interface SnapshotsDeps {
  /** Undefined for an unknown camera. */
  readonly find: (cameraId: string) => SnapshotSource | undefined;
  readonly reach: Reach;
  readonly clock: Clock;
  /** For images being fetched or cached. */
  readonly memory?: MemoryAccount | undefined;
}

const GOOD_FOR_MS = 15_000;
const FAILURE_GOOD_FOR_MS = 1_000;
/** From the request to the last byte, including logins and redirects. */
const TIMEOUT_MS = 10_000;

export class Snapshots {
  readonly #deps: SnapshotsDeps;
  readonly #images: SharedImages;
  readonly #memory: MemoryAccount;
  readonly #agents = new Set<Agent>();
  readonly #end = new AbortController();

  constructor(deps: SnapshotsDeps) {
    this.#deps = deps;
    const { clock } = deps;
    this.#memory = deps.memory ?? unlimitedMemory('images');
    this.#images = new SharedImages({
      goodForMs: GOOD_FOR_MS,
      failureGoodForMs: FAILURE_GOOD_FOR_MS,
      clock,
      memory: this.#memory,
    });
  }

  /** Rejects with StillError. */
  async get(cameraId: string): Promise<StillImage> {
    const camera = this.#deps.find(cameraId);
    if (!camera) throw new StillError('unknown-camera', 'this node does not know such a camera');
    const { snapshot, tls } = camera;
    if (snapshot === undefined) {
      throw new StillError('no-snapshot-address', 'this camera has no snapshot address in the configuration');
    }
    const from = JSON.stringify([snapshot, camera.source, tls, camera.allowPlaintextLogin]);
    return this.#images.get(cameraId, from, () => this.#fetch(camera, snapshot, cameraId));
  }

  /** The next caller gets an answer of the camera, not one that was kept. */
  forget(cameraId: string): void {
    this.#images.forget(cameraId);
  }

  /** The image of a camera that is not configured. Rejects with StillError. */
  ofNew(camera: SnapshotSource & { readonly snapshot: string }): Promise<StillImage> {
    // Ids of cameras have no spaces.
    return this.#images.get(`new ${camera.snapshot}`, JSON.stringify(camera), () =>
      this.#fetch(camera, camera.snapshot),
    );
  }

  /** Aborts all requests. */
  async close(): Promise<void> {
    this.#end.abort(new StillError('camera-unreachable', 'the recorder is stopping'));
    await Promise.all(Array.from(this.#agents, (agent) => agent.destroy()));
  }

  async #fetch(camera: SnapshotSource, snapshot: string, cameraId?: string): Promise<FetchedImage> {
    const late = new AbortController();
    const timer = this.#deps.clock.after(TIMEOUT_MS, () => {
      late.abort(new StillError('camera-timeout', `the camera did not answer within ${TIMEOUT_MS / 1000} s`));
    });
    const agent = openAgent(camera.tls, this.#deps.reach);
    this.#agents.add(agent);
    try {
      const signal = AbortSignal.any([late.signal, this.#end.signal]);
      const { url, credentials } = parseStillAddress(snapshot, camera.source);
      const basic = camera.allowPlaintextLogin ? 'always' : undefined;
      const loginAt = ({ secure, ...place }: Origin): Login =>
        new Login(
          { credentials, secure, basic },
          this.#deps.reach.logins.at({ kind: 'still', path: url.pathname, cameraId, ...place }, credentials),
        );
      return await fetchImage(url, loginAt, agent, this.#memory, signal);
    } finally {
      timer.cancel();
      this.#agents.delete(agent);
      await agent.destroy();
    }
  }
}

/**
 * The URL to request, without its user part, and the login to use: that in `snapshot`, or else that in `source`, the camera's
 * stream, if it has the same host. Throws if either is not a valid address.
 */
function parseStillAddress(snapshot: string, source: string) {
  // Uses the tolerant parser for stream addresses, because passwords are written in the same way, with `@`, `/` and `#`.
  const { host, request, credentials } = parseRtspUrl(snapshot.replace(/^\s*http(s?):/i, 'rtsp$1:'));
  const stream = parseRtspUrl(source);
  return {
    url: new URL(request.replace(/^rtsp(s?):/, 'http$1:')),
    credentials: credentials ?? (isSameHost(host, stream.host) ? stream.credentials : undefined),
  };
}
