// Headless Firefox of the system for tests, driven by WebDriver BiDi (W3C): the protocol is in the browser, so that no driver is
// needed. It connects to loopback addresses only.

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { Child } from './child.ts';
import { until } from './until.ts';

const NAMES = ['firefox-esr', 'firefox'];
const START_MS = 120_000;
const ANSWER_MS = 60_000;
/** Where the protocol has the key Enter (WebDriver, keyboard actions). */
const ENTER = '\uE007';

const findFirefox = (): string | undefined =>
  NAMES.find((name) => spawnSync(name, ['--version'], { timeout: 120_000 }).status === 0);

/** Why there is no Firefox, or false; the value for a test's `skip`. */
export const firefoxMissing = (): string | false => (findFirefox() === undefined ? 'Firefox is not installed' : false);

/** Nothing but the page that a test opens is asked for, and files are saved without a question. */
const preferences = (downloads: string): Readonly<Record<string, string | number | boolean>> => ({
  'app.normandy.enabled': false,
  'app.update.auto': false,
  'browser.download.dir': downloads,
  'browser.download.folderList': 2,
  'browser.helperApps.neverAsk.saveToDisk': 'video/mp4',
  'browser.download.always_ask_before_handling_new_types': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.page': 0,
  'datareporting.policy.dataSubmissionEnabled': false,
  'media.autoplay.default': 0,
  // Whatever the browser itself wants to fetch goes to a port where nobody listens.
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'network.proxy.no_proxies_on': 'localhost, 127.0.0.1',
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'network.trr.mode': 5,
  'toolkit.telemetry.enabled': false,
});

interface Answer {
  readonly id?: number;
  readonly type: 'success' | 'error' | 'event';
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: string;
  readonly message?: string;
}

type Result = Readonly<Record<string, unknown>>;

/** A browser with one page. */
export class Firefox {
  readonly downloads: string;
  readonly #child: Child;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #context = '';
  #sent = 0;

  private constructor(child: Child, socket: WebSocket, downloads: string) {
    this.#child = child;
    this.#socket = socket;
    this.downloads = downloads;
    socket.on('message', (data: Buffer) => {
      const answer = JSON.parse(data.toString()) as Answer;
      if (answer.id !== undefined) this.#waiting.get(answer.id)?.(answer);
    });
  }

  /** `directory`: for its profile and what it downloads. */
  static async start(directory: string): Promise<Firefox> {
    const name = findFirefox();
    if (name === undefined) throw new Error('Firefox is not installed');
    const profile = join(directory, 'profile');
    const downloads = join(directory, 'downloads');
    mkdirSync(profile, { recursive: true });
    mkdirSync(downloads, { recursive: true });
    const lines = Object.entries(preferences(downloads)).map(
      ([key, value]) => `user_pref(${JSON.stringify(key)}, ${JSON.stringify(value)});\n`,
    );
    writeFileSync(join(profile, 'user.js'), lines.join(''));
    const args = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'];
    const env = { ...process.env, HOME: directory, MOZ_HEADLESS_WIDTH: '1440', MOZ_HEADLESS_HEIGHT: '900' };
    const child = new Child(name, args, { env, cwd: directory });
    try {
      const pattern = /WebDriver BiDi listening on (ws:\/\/\S+)/;
      await until('Firefox listens', () => pattern.test(child.output) || child.ended, START_MS);
      const socket = new WebSocket(`${pattern.exec(child.output)?.[1] ?? 'ws://127.0.0.1:1'}/session`);
      await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
      const made = new Firefox(child, socket, downloads);
      await made.#ask('session.new', { capabilities: {} });
      const { contexts } = await made.#ask('browsingContext.getTree', {});
      made.#context = (contexts as readonly { readonly context: string }[])[0]?.context ?? '';
      return made;
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw new Error(`Firefox did not start: ${child.output}`, { cause: error });
    }
  }

  async goto(url: string): Promise<void> {
    await this.#ask('browsingContext.navigate', { context: this.#context, url, wait: 'complete' });
  }

  /** The JSON value of an expression, or of what its promise resolves to. */
  async evaluate<T>(script: string): Promise<T> {
    const answer = await this.#ask('script.evaluate', {
      expression: `(async () => JSON.stringify((await (${script})) ?? null))()`,
      target: { context: this.#context },
      awaitPromise: true,
    });
    if (answer['type'] !== 'success') throw new Error(`${script}: ${JSON.stringify(answer['exceptionDetails'])}`);
    return JSON.parse((answer['result'] as { readonly value: string }).value) as T;
  }

  /** Clicks the middle of the element, as soon as it is there. */
  async click(selector: string): Promise<void> {
    const middle = await until(selector, () =>
      this.evaluate<{ x: number; y: number } | false>(`(() => {
        const element = document.querySelector(${JSON.stringify(selector)});
        element?.scrollIntoView({ block: 'nearest' });
        const { x, y, width, height } = element?.getBoundingClientRect() ?? { width: 0 };
        return width === 0 || element.disabled ? false : { x: Math.round(x + width / 2), y: Math.round(y + height / 2) };
      })()`),
    );
    await this.#act({
      type: 'pointer',
      id: 'mouse',
      actions: [
        { type: 'pointerMove', ...middle },
        { type: 'pointerDown', button: 0 },
        { type: 'pointerUp', button: 0 },
      ],
    });
  }

  /** Types into the element that has the focus; `\n` is Enter. */
  async type(text: string): Promise<void> {
    const keys = Array.from(text, (key) => (key === '\n' ? ENTER : key));
    const actions = keys.flatMap((value) => [
      { type: 'keyDown', value },
      { type: 'keyUp', value },
    ]);
    await this.#act({ type: 'key', id: 'keys', actions });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.terminate();
    await this.#child[Symbol.asyncDispose]();
  }

  #act(source: Result): Promise<Result> {
    return this.#ask('input.performActions', { context: this.#context, actions: [source] });
  }

  async #ask(method: string, params: Result): Promise<Result> {
    const id = ++this.#sent;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#waiting.set(id, resolve);
    const timer = setTimeout(() => reject(new Error(`${method} gets no answer`)), ANSWER_MS);
    this.#socket.send(JSON.stringify({ id, method, params }));
    try {
      const { type, result = {}, error, message } = await promise;
      if (type !== 'success') throw new Error(`${method}: ${error}: ${message}`);
      return result;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }
}
