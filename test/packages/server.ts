// A Debian server in a container of its own: systemd is its first process, it has a network of its own, and its files are gone
// when it is closed. systemd-nspawn starts it without a service manager on this machine.

import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cacheDirectory } from '../cluster/programs.ts';
import { Child } from '../support/child.ts';
import { until } from '../support/until.ts';
import { ROOT } from './packages.ts';

/** As hack/setup makes it. */
const DEBIAN = join(cacheDirectory(), 'server/bookworm');
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const CGROUPS = '/sys/fs/cgroup';
const CAMERA_PORT = 8554;

interface Outcome {
  readonly code: number;
  /** Standard output and error. */
  readonly output: string;
}

/** Why there can be no server here, or false. */
export function serverMissing(): string | false {
  if (process.getuid?.() !== 0) return 'only root can start a container';
  const missing = [DEBIAN, '/usr/bin/systemd-nspawn'].filter((path) => !existsSync(path));
  return missing.length > 0 && `not here: ${missing.join(', ')}; hack/setup packages server brings it`;
}

export class Server {
  readonly #directory = mkdtempSync(join(tmpdir(), 'kube-nvr-server-'));
  readonly #name = basename(this.#directory).toLowerCase();
  readonly #container: Child;
  readonly #children: Child[] = [];
  #init = 0;

  private constructor() {
    // systemd-nspawn divides the control group that it is started in, and leaves the parts behind.
    const script = `
      directory=$1 name=$2
      for hierarchy in ${CGROUPS} ${CGROUPS}/systemd ${CGROUPS}/unified; do
        [ -e $hierarchy/cgroup.procs ] || continue
        mkdir $hierarchy/$name
        echo $$ >$hierarchy/$name/cgroup.procs
      done
      mkdir $directory/changes $directory/work $directory/root
      mount -t overlay -o lowerdir=${DEBIAN},upperdir=$directory/changes,workdir=$directory/work overlay $directory/root
      exec systemd-nspawn --quiet --boot --directory=$directory/root --machine=$name --hostname=server \\
        --register=no --keep-unit --private-network --console=pipe`;
    this.#container = new Child('sh', ['-ec', script, 'sh', this.#directory, this.#name]);
  }

  static async boot(): Promise<Server> {
    const server = new Server();
    try {
      await until('systemd runs', async () => {
        if (server.#container.ended) throw new Error(server.#container.output);
        const pid = server.#container.pid;
        server.#init = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').at(-1));
        const { output } = await server.attempt('systemctl is-system-running');
        return server.#init > 0 && /^(running|degraded)$/m.test(output);
      });
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  /** Its files, as this machine sees them. */
  get root(): string {
    return join(this.#directory, 'root');
  }

  /** Runs a line of shell on it. */
  attempt(line: string): Promise<Outcome> {
    return run('nsenter', [
      '--target',
      `${this.#init}`,
      '--all',
      'env',
      '-i',
      `PATH=${PATH}`,
      'LC_ALL=C',
      'sh',
      '-c',
      line,
    ]);
  }

  /** Throws unless it succeeds. */
  async run(line: string): Promise<string> {
    const { code, output } = await this.attempt(line);
    if (code !== 0) throw new Error(`${line} ended with ${code}: ${output}`);
    return output.trim();
  }

  /** The body of an answer of the recorder on it; throws unless the status is 200. `token`: whose rights. */
  async get<T>(path: string, token?: string): Promise<T> {
    const login = token === undefined ? [] : ['--header', `Authorization: Bearer ${token}`];
    const address = `http://127.0.0.1:9997${path}`;
    const args = ['--target', `${this.#init}`, '--net', 'curl', '--silent', '--show-error', '--fail-with-body'];
    const { code, output } = await run('nsenter', [...args, ...login, address]);
    if (code !== 0) throw new Error(`${path}: ${output}`);
    return JSON.parse(output) as T;
  }

  /** Puts a file of this machine into /root of the server, and returns where it is there. */
  bring(file: string): string {
    cpSync(file, join(this.root, 'root', basename(file)));
    return join('/root', basename(file));
  }

  /** Starts a camera in the server's network and returns its address there. */
  async startCamera(): Promise<string> {
    const command = [process.execPath, join(ROOT, 'test/camera/command.ts'), '--port', `${CAMERA_PORT}`];
    const camera = new Child('nsenter', ['--target', `${this.#init}`, '--net', ...command]);
    this.#children.push(camera);
    const [address] = await until('the camera serves', () => {
      if (camera.ended) throw new Error(camera.output);
      return /rtsp:\S+/.exec(camera.output) ?? undefined;
    });
    return address;
  }

  async close(): Promise<void> {
    for (const child of this.#children) await child.stop();
    // Its init ends all services first.
    await this.#container.stop('SIGTERM', 60_000);
    await run('umount', [this.root]);
    rmSync(this.#directory, { recursive: true, force: true });
    rmSync(join('/run/systemd/nspawn/propagate', this.#name), { recursive: true, force: true });
    // Only empty groups can be removed, and those in them first.
    for (const hierarchy of ['', 'systemd', 'unified'])
      await run('find', [join(CGROUPS, hierarchy, this.#name), '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']);
  }
}

const run = (command: string, args: readonly string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = execFile(command, args, { maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      resolve({ code: error ? (child.exitCode ?? 1) : 0, output: stdout + stderr });
    });
    child.stdin?.end();
  });
