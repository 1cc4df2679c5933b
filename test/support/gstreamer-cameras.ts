// Real RTSP servers for end-to-end tests: demo/cameras.py as a child process.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Child } from './child.ts';
import { until } from './until.ts';

const SCRIPT = join(import.meta.dirname, '../../demo/cameras.py');
/** The system's Python, because others have no GStreamer. */
const PYTHON = '/usr/bin/python3';

export interface GstreamerCamera {
  readonly name: string;
  readonly video: 'h264' | 'h264-b' | 'h265' | 'mjpeg' | 'mjpeg-422';
  readonly audio: 'aac' | 'pcmu' | 'pcma' | 'opus' | 'l16' | 'mp2' | 'mp3' | 'none';
  readonly width?: number;
  readonly height?: number;
  readonly fps?: number;
  /** Pictures between key frames. */
  readonly gop?: number;
  readonly kbps?: number;
  readonly port?: number;
  readonly auth?: 'digest' | 'basic';
  readonly user?: string;
  readonly password?: string;
}

/** Why these cameras are not available, or false; the value for a test's `skip`. */
export function gstreamerMissing(): string | false {
  const code = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer";
  return spawnSync(PYTHON, ['-c', code]).status === 0 ? false : "GStreamer's RTSP server is not installed";
}

export class GstreamerCameras {
  readonly #child: Child;
  readonly #urls: ReadonlyMap<string, string>;

  private constructor(child: Child, urls: ReadonlyMap<string, string>) {
    this.#child = child;
    this.#urls = urls;
  }

  static async start(cameras: readonly GstreamerCamera[]): Promise<GstreamerCameras> {
    // Through standard input, because passwords must not be in a process's arguments.
    const child = new Child(PYTHON, [SCRIPT, '--port', '0', '--config', '-', '--with-parent'], {
      input: JSON.stringify(cameras) + '\n',
    });
    const urls = new Map<string, string>();
    await until('the GStreamer cameras are ready', () => {
      for (const [, name, url] of child.output.matchAll(/^ready (\S+) (\S+)$/gm)) urls.set(name!, url!);
      return urls.size === cameras.length || child.ended;
    });
    if (urls.size < cameras.length) throw new Error(`the cameras did not start:\n${child.output}`);
    return new GstreamerCameras(child, urls);
  }

  /** The camera's address, including a login if given. */
  url(name: string, login?: { readonly user: string; readonly password: string }): string {
    const url = new URL(this.#urls.get(name)!);
    if (login) {
      url.username = encodeURIComponent(login.user);
      url.password = encodeURIComponent(login.password);
    }
    return url.href;
  }

  port(name: string): number {
    return Number(new URL(this.#urls.get(name)!).port);
  }

  /** The number of open RTSP sessions of the servers. */
  async sessions(): Promise<number> {
    const before = [...this.#child.output.matchAll(/^sessions \d+$/gm)].length;
    this.#child.signal('SIGUSR1');
    return until('the number of sessions', () => {
      const lines = [...this.#child.output.matchAll(/^sessions (\d+)$/gm)];
      return lines.length > before && { count: Number(lines.at(-1)![1]) };
    }).then(({ count }) => count);
  }

  async stop(): Promise<void> {
    await this.#child.stop('SIGTERM', 5_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
