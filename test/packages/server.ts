// A Debian server in a container of its own: systemd is its first process, it has a network of its own, and its files are gone
// when it is closed. systemd-nspawn starts it without a service manager on this machine. It can lose its power and boot again.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
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

interface ServerOptions {
  readonly hostname?: string;
  /** A directory with files over those of Debian, as `installedLayer` makes it. */
  readonly layer?: string;
  /** Gives the network namespace of a process an interface, before services start. Default: it has only a loopback. */
  readonly connect?: (pid: number) => void;
}

export class Server {
  readonly hostname: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'kube-nvr-server-'));
  readonly #name = basename(this.#directory).toLowerCase();
  readonly #children: Child[] = [];
  readonly #connect: (pid: number) => void;
  #container: Child | undefined;
  #init = 0;

  private constructor({ hostname = 'server', layer, connect = () => {} }: ServerOptions) {
    this.hostname = hostname;
    this.#connect = connect;
    mountOver(this.#directory, layer === undefined ? [DEBIAN] : [layer, DEBIAN]);
    // As the installer of Debian writes them; systemd sets the name that stands here.
    writeFileSync(join(this.root, 'etc/hostname'), `${hostname}\n`);
    writeFileSync(join(this.root, 'etc/hosts'), `127.0.0.1 localhost\n127.0.1.1 ${hostname}\n`);
  }

  static async boot(options: ServerOptions = {}): Promise<Server> {
    const server = new Server(options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  /** Boots it, also again after `kill`, with the files that it had. */
  async start(): Promise<void> {
    // systemd-nspawn divides the control group that it is started in, and leaves the parts behind. Leases and cameras are in real
    // time, whatever priority this process has.
    const script = `
      directory=$1 name=$2 hostname=$3
      renice -n 0 -p $$ >/dev/null
      for hierarchy in ${CGROUPS} ${CGROUPS}/systemd ${CGROUPS}/unified; do
        [ -e $hierarchy/cgroup.procs ] || continue
        mkdir -p $hierarchy/$name
        echo $$ >$hierarchy/$name/cgroup.procs
      done
      exec systemd-nspawn --quiet --boot --directory=$directory/root --machine=$name --hostname=$hostname \\
        --register=no --keep-unit --private-network --console=pipe`;
    const container = new Child('sh', ['-ec', script, 'sh', this.#directory, this.#name, this.hostname]);
    this.#container = container;
    this.#init = 0;
    this.#init = await until(
      'its first process is there',
      () => {
        if (container.ended) throw new Error(container.output);
        return initOf(container.pid);
      },
      undefined,
      10,
    );
    this.#connect(this.#init);
    await until(`systemd runs on ${this.hostname}`, async () => {
      if (container.ended) throw new Error(container.output);
      const { output } = await this.attempt('systemctl is-system-running; systemctl list-jobs --no-legend');
      assert.match(output, /^(running|degraded)$/m);
      return true;
    });
  }

  /** As when the power goes: all its processes end at once. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    process.kill(this.#init, 'SIGKILL');
    await this.#container?.exit();
  }

  get isRunning(): boolean {
    return this.#container !== undefined && !this.#container.ended;
  }

  /** Of its first process, on this machine. */
  get pid(): number {
    return this.#init;
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
    return JSON.parse(await this.curl(path, ...login)) as T;
  }

  /** What curl, which only trusts the recorder's own certificate, prints of its answer; throws unless the status is 200. */
  async curl(path: string, ...options: readonly string[]): Promise<string> {
    const { certificate } = this;
    const own = existsSync(certificate)
      ? ['--cacert', certificate, `https://127.0.0.1:9997${path}`]
      : [`http://127.0.0.1:9997${path}`];
    const curl = ['curl', '--silent', '--show-error', '--fail-with-body', '--max-time', '30'];
    const { code, output } = await run('nsenter', ['--target', `${this.#init}`, '--net', ...curl, ...options, ...own]);
    if (code !== 0) throw new Error(`${path}: ${output}`);
    return output;
  }

  /** By which clients trust the recorder: its own certificate, or the authority of its cluster. */
  get certificate(): string {
    const [own, cluster] = ['tls/certificate.pem', `data/node_${this.hostname}/tls/authorities.pem`].map((file) =>
      join(this.root, 'var/lib/recorder', file),
    ) as [string, string];
    return existsSync(cluster) ? cluster : own;
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
    if (this.isRunning) await this.#container?.stop('SIGTERM', 60_000);
    await run('umount', [this.root]);
    rmSync(this.#directory, { recursive: true, force: true });
    rmSync(join('/run/systemd/nspawn/propagate', this.#name), { recursive: true, force: true });
    // Only empty groups can be removed, and those in them first.
    for (const hierarchy of ['', 'systemd', 'unified'])
      await run('find', [join(CGROUPS, hierarchy, this.#name), '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']);
  }
}

/** The first process of a container, when it has a network of its own; undefined before. */
function initOf(pid: number): number | undefined {
  const [child = ''] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').reverse();
  if (child === '') return undefined;
  const [own, its] = [process.pid, child].map((one) => readlinkSync(`/proc/${one}/ns/net`));
  // Process 1 of its own namespace.
  const isFirst = /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${child}/status`, 'latin1'));
  return isFirst && own !== its ? Number(child) : undefined;
}

/** Mounts `<directory>/root`: what is below, and the changes that are made there. */
function mountOver(directory: string, below: readonly string[]): void {
  const [changes, work, root] = ['changes', 'work', 'root'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [changes, work, root]) mkdirSync(path);
  const options = `lowerdir=${below.join(':')},upperdir=${changes},workdir=${work}`;
  execFileSync('mount', ['-t', 'overlay', '-o', options, 'overlay', root]);
}

/** A layer for servers on which this package is installed, and etcd of this machine. */
export async function installedLayer(directory: string, deb: string, etcd: string): Promise<string> {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory);
  mountOver(directory, [DEBIAN]);
  const root = join(directory, 'root');
  try {
    cpSync(deb, join(root, 'root', basename(deb)));
    cpSync(etcd, join(root, 'usr/bin/etcd'));
    // systemd's tools for users and files want /proc.
    const script = 'mount -t proc proc "$1/proc" && exec chroot "$1" env -i "PATH=$2" dpkg -i "$3"';
    const args = ['--mount', 'sh', '-ec', script, 'sh', root, PATH, `/root/${basename(deb)}`];
    const { code, output } = await run('unshare', args);
    if (code !== 0) throw new Error(output);
    rmSync(join(root, 'root', basename(deb)));
  } finally {
    execFileSync('umount', [root]);
  }
  return join(directory, 'changes');
}

const run = (command: string, args: readonly string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = execFile(command, args, { maxBuffer: 64 * 2 ** 20 }, (error, stdout, stderr) => {
      resolve({ code: error ? (child.exitCode ?? 1) : 0, output: stdout + stderr });
    });
    child.stdin?.end();
  });
