// A control group with a memory limit (cgroups, version 1 or 2) in which a process can be run. Only root can create one, and not
// on every machine.

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const MOUNT = '/sys/fs/cgroup';
let made = 0;

export class MemoryGroup {
  readonly #directory: string;
  readonly #version: 1 | 2;

  private constructor(directory: string, version: 1 | 2) {
    this.#directory = directory;
    this.#version = version;
  }

  /** Undefined, with the test skipped, if none can be created. */
  static make(t: TestContext, limitBytes: number): MemoryGroup | undefined {
    try {
      const group = MemoryGroup.#make(limitBytes);
      // After the processes in it have ended: hooks run in the order of registration.
      t.after(() => group.#remove());
      return group;
    } catch (err) {
      t.skip(`a control group with a limit of memory cannot be made here: ${String(err)}`);
      return undefined;
    }
  }

  static #make(limitBytes: number): MemoryGroup {
    const version = existsSync(join(MOUNT, 'memory/memory.limit_in_bytes')) ? 1 : 2;
    const root = version === 1 ? join(MOUNT, 'memory') : MOUNT;
    if (version === 2) {
      const controllers = readFileSync(join(root, 'cgroup.controllers'), 'latin1');
      if (!controllers.split(/\s/).includes('memory')) throw new Error('no memory controller');
      writeFileSync(join(root, 'cgroup.subtree_control'), '+memory');
    }
    const group = new MemoryGroup(join(root, `kube-nvr-test-${process.pid}-${made++}`), version);
    mkdirSync(group.#directory);
    group.#write(version === 1 ? 'memory.limit_in_bytes' : 'memory.max', limitBytes);
    return group;
  }

  /** The start of a command line that runs the rest in the group. */
  get through(): readonly string[] {
    return ['/bin/sh', '-c', `echo $$ > ${join(this.#directory, 'cgroup.procs')} && exec "$@"`, 'sh'];
  }

  /** The peak memory use, including file system caches. */
  get peakBytes(): number {
    return Number(this.#read(this.#version === 1 ? 'memory.max_usage_in_bytes' : 'memory.peak'));
  }

  /** How many processes the kernel has killed because the limit was reached. */
  get kills(): number {
    const text = this.#read(this.#version === 1 ? 'memory.oom_control' : 'memory.events');
    return Number(/^oom_kill (\d+)/m.exec(text)?.[1]);
  }

  #read(name: string): string {
    return readFileSync(join(this.#directory, name), 'latin1');
  }

  #write(name: string, value: number): void {
    writeFileSync(join(this.#directory, name), String(value));
  }

  #remove(): void {
    rmdirSync(this.#directory);
  }
}
