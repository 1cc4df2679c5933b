// A scripted camera with a memory and the ONVIF services for it (Profile G): one clock, one link that can be cut.

import { OnvifDevice } from '../onvif/device.ts';
import type { DeviceOptions } from '../onvif/device.ts';
import { startCamera } from './camera.ts';
import type { Camera } from './camera.ts';
import type { CameraMemory } from './memory.ts';
import type { CameraOptions } from './options.ts';

interface EdgeCameraOptions extends CameraOptions {
  /** Of the ONVIF device. */
  readonly device?: DeviceOptions;
}

export class EdgeCamera {
  readonly camera: Camera;
  readonly memory: CameraMemory;
  readonly device: OnvifDevice;
  #port: number;

  private constructor(camera: Camera, memory: CameraMemory, device: OnvifDevice) {
    this.camera = camera;
    this.memory = memory;
    this.device = device;
    this.#port = device.port;
  }

  static async start({ device: deviceOptions = {}, ...options }: EdgeCameraOptions = {}): Promise<EdgeCamera> {
    const camera = await startCamera({ ...options, memory: options.memory ?? {} });
    const memory = camera.memory as CameraMemory;
    const device = await OnvifDevice.start({
      ...(options.credentials ? { credentials: options.credentials } : {}),
      ...(options.clock ? { nowMs: () => options.clock?.wallMs() ?? 0 } : {}),
      clockOffsetMs: memory.clockOffsetMs,
      memory: () => recordingsOf(memory),
      replayUri: () => camera.url.replace(/\/stream$/, '/replay?recording=card'),
      ...deviceOptions,
    });
    return new EdgeCamera(camera, memory, device);
  }

  /** Somebody sets the camera's clock. */
  setClock(offsetMs: number): void {
    this.memory.clockOffsetMs = offsetMs;
    this.device.clockOffsetMs = offsetMs;
  }

  /** The link is cut: nothing of the camera can be reached. It goes on encoding into its memory. */
  async cut(): Promise<void> {
    this.camera.cut();
    await this.device.close();
  }

  async mend(): Promise<void> {
    this.camera.mend();
    await this.device.listen(this.#port);
  }

  async close(): Promise<void> {
    await this.camera.close();
    await this.device.close().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function recordingsOf(memory: CameraMemory): ReturnType<NonNullable<DeviceOptions['memory']>> {
  if (memory.failed) return undefined;
  const { span } = memory;
  if (!span) return [];
  const tracks = memory.tracks.map(({ kind }) => kind).filter((kind) => kind !== 'application');
  return [{ token: 'card', ...span, tracks, isGoingOn: memory.recording }];
}
