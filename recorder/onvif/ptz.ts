// The PTZ cameras of a node. They are independent: a slow one does not delay the others.

import { isDeepStrictEqual } from 'node:util';
import { CameraPtz, type CameraPtzDeps, type PtzCommand, type PtzOutcome } from './camera-ptz.ts';
import type { Preset } from './client.ts';
import { onvifTarget, type CameraAddress, type OnvifTarget } from './target.ts';

/** The relevant part of a camera's configuration. */
interface PtzCamera extends CameraAddress {
  readonly id: string;
  readonly ptz: boolean;
}

/** The operations of a PTZ camera. Both reject with `OnvifError`. */
export interface MovableCamera {
  run(command: PtzCommand): Promise<PtzOutcome>;
  presets(): Promise<readonly Preset[]>;
}

type PtzDeps = Omit<CameraPtzDeps, 'cameraId'>;

export class Ptz {
  readonly #deps: PtzDeps;
  readonly #cameras = new Map<string, { readonly target: OnvifTarget; readonly camera: CameraPtz }>();
  /** Cameras that are configured but without PTZ. */
  #disabled = new Set<string>();

  constructor(deps: PtzDeps) {
    this.#deps = deps;
  }

  /** Cameras that were removed or have another address are stopped and forgotten. */
  configure(cameras: readonly PtzCamera[]): void {
    this.#disabled = new Set(cameras.filter(({ ptz }) => !ptz).map(({ id }) => id));
    const wanted = new Map(cameras.filter(({ ptz }) => ptz).map((camera) => [camera.id, onvifTarget(camera)]));
    for (const [id, { target, camera }] of this.#cameras) {
      if (isDeepStrictEqual(wanted.get(id), target)) continue;
      this.#cameras.delete(id);
      void camera.close();
    }
    for (const [id, target] of wanted) {
      if (this.#cameras.has(id)) continue;
      const log = this.#deps.log.child({ camera: id });
      this.#cameras.set(id, { target, camera: new CameraPtz(target, { ...this.#deps, cameraId: id, log }) });
    }
  }

  get(cameraId: string): MovableCamera | 'disabled' | 'unknown' {
    const known = this.#cameras.get(cameraId);
    if (known) return known.camera;
    return this.#disabled.has(cameraId) ? 'disabled' : 'unknown';
  }

  /** Stops every moving camera. Never rejects; takes a few seconds at most. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#cameras.values(), ({ camera }) => camera.close()));
  }
}
