// What the API asks of the examination of cameras.

import type { CameraSource } from '../../contract/camera-source.ts';
import type { ProbeReport } from './report.ts';

/** Another camera is being examined. */
export class DoctorBusy extends Error {
  override readonly name = 'DoctorBusy';
}

export interface Examiner {
  /** Undefined if the camera is not connected. Throws `DoctorBusy`. */
  report(cameraId: string, seconds: number, signal: AbortSignal): Promise<ProbeReport | undefined>;
  /** The capture as a gzip file. */
  capture(cameraId: string, seconds: number, signal: AbortSignal): Promise<Buffer | undefined>;
  /** Connects to an address; disconnects after that time or at the first failure. Throws `DoctorBusy`. */
  tryOut(camera: TriedCamera, seconds: number, signal: AbortSignal): Promise<ProbeReport>;
}

/** A camera that is not configured. */
export type TriedCamera = Omit<CameraSource, 'id' | 'name'>;
