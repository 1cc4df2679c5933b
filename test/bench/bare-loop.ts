// The least that a Node program can do with cameras: one process that receives every camera's interleaved stream into one reused
// buffer (`onread`) and writes all bytes, including framing, to one file per camera without examining them. Bytes are collected
// in 256 KiB buffers, each written with one asynchronous write, which is cheaper than a write per read.
//
//   node bare-loop.ts DIRECTORY URL...

import { open, type FileHandle } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

const READ_BYTES = 64 * 1024;
const WRITE_BYTES = 256 * 1024;

class BareCamera {
  readonly #file: FileHandle;
  readonly #socket: Socket;
  readonly #requests: string[];
  #buffer: Buffer = Buffer.allocUnsafeSlow(WRITE_BYTES);
  #spare: Buffer | undefined = Buffer.allocUnsafeSlow(WRITE_BYTES);
  #used = 0;
  #playing = false;
  #answer = '';

  constructor(url: string, file: FileHandle) {
    this.#file = file;
    const transport = (channel: number): string =>
      `Transport: RTP/AVP/TCP;unicast;interleaved=${channel}-${channel + 1}\r\n`;
    this.#requests = [
      `DESCRIBE ${url} RTSP/1.0\r\nCSeq: 1\r\n\r\n`,
      `SETUP ${url}/trackID=0 RTSP/1.0\r\nCSeq: 2\r\n${transport(0)}\r\n`,
      `SETUP ${url}/trackID=1 RTSP/1.0\r\nCSeq: 3\r\n${transport(2)}\r\n`,
      `PLAY ${url} RTSP/1.0\r\nCSeq: 4\r\n\r\n`,
    ];
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    this.#socket = connect({
      host: '127.0.0.1',
      port: Number(new URL(url).port),
      onread: { buffer, callback: (size) => this.#read(buffer, size) },
    });
    this.#socket.on('error', (error) => {
      throw error;
    });
    this.#socket.write(this.#requests.shift() as string);
  }

  #read(buffer: Uint8Array, size: number): boolean {
    if (!this.#playing) this.#shakeHands(Buffer.from(buffer.buffer, buffer.byteOffset, size));
    if (this.#used + size > WRITE_BYTES) this.#flush();
    this.#buffer.set(buffer.subarray(0, size), this.#used);
    this.#used += size;
    return true;
  }

  #shakeHands(bytes: Buffer): void {
    this.#answer += bytes.toString('latin1');
    const header = this.#answer.indexOf('\r\n\r\n');
    if (header < 0) return;
    const length = Number(/content-length: *(\d+)/i.exec(this.#answer)?.[1] ?? 0);
    if (this.#answer.length < header + 4 + length) return;
    this.#answer = '';
    const next = this.#requests.shift();
    if (next) this.#socket.write(next);
    else this.#playing = true;
  }

  #flush(): void {
    const full = this.#buffer.subarray(0, this.#used);
    const whole = this.#buffer;
    this.#buffer = this.#spare ?? Buffer.allocUnsafeSlow(WRITE_BYTES);
    this.#spare = undefined;
    this.#used = 0;
    void this.#file.write(full).then(() => {
      this.#spare = whole;
    });
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    this.#flush();
    await this.#file.sync();
    await this.#file.close();
  }
}

const [directory = '.', ...urls] = process.argv.slice(2);
const cameras: BareCamera[] = [];
for (const [i, url] of urls.entries()) {
  cameras.push(new BareCamera(url, await open(join(directory, `bare-${i}.bin`), 'w')));
}
process.once('SIGTERM', () => {
  void Promise.all(cameras.map((camera) => camera.close())).then(() => process.exit(0));
});
