// Helm as tests run it: with a home of its own, on the charts of this checkout.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { findProgram, kubernetesVersion, needProgram } from '../cluster/programs.ts';

export const CHART = join(import.meta.dirname, '../../charts/kube-nvr');
export const KINDS_CHART = join(import.meta.dirname, '../../charts/kube-nvr-crds');

// oxlint-disable-next-line typescript/no-explicit-any -- objects of any kind, looked at by path
export type Manifest = any;
export type Values = Readonly<Record<string, unknown>>;

/** Why tests that need helm, or a program that checks what it renders, are left out; false when they are not. */
export const helmMissing = (name: 'helm' | 'helm-unittest' | 'kubeconform' = 'helm'): string | false =>
  findProgram(name) === undefined && `not here: ${name}; hack/setup helm brings it`;

export class Helm {
  readonly #home = mkdtempSync(join(tmpdir(), 'kube-nvr-helm-'));
  readonly #kubeconfig: string | undefined;
  readonly #rendered = new Map<string, Promise<readonly Manifest[]>>();
  #files = 0;

  constructor(kubeconfig?: string) {
    this.#kubeconfig = kubeconfig;
  }

  /** What it prints; throws with its words when it fails. `values` go where it reads files of values. */
  run(args: readonly string[], values: Values = {}): Promise<string> {
    const file = join(this.#home, `values-${this.#files++}.yaml`);
    writeFileSync(file, JSON.stringify(values));
    const takesValues = ['install', 'upgrade', 'template', 'lint'].includes(args[0]!);
    const kubeconfig = this.#kubeconfig === undefined ? [] : ['--kubeconfig', this.#kubeconfig];
    const all = [...args, ...(takesValues ? ['--values', file] : []), ...kubeconfig];
    return new Promise((resolve, reject) => {
      execFile(
        needProgram('helm'),
        all,
        { maxBuffer: 64 * 1024 * 1024, env: { PATH: process.env['PATH'], HOME: this.#home } },
        (error, stdout, stderr) => {
          if (error) reject(new Error(`helm ${args.join(' ')}: ${stderr.trim() || stdout.trim()}`));
          else resolve(stdout);
        },
      );
    });
  }

  /** Installs or upgrades the kinds of a chart, until the API server knows them. */
  kinds(namespace: string, chart = KINDS_CHART): Promise<string> {
    const place = ['--namespace', namespace, '--create-namespace', '--wait'];
    return this.run(['upgrade', '--install', 'kube-nvr-crds', chart, ...place]);
  }

  /** The objects that it would make of a new release `nvr` in the namespace `video`. */
  template(values: Values = {}, ...args: readonly string[]): Promise<readonly Manifest[]> {
    const key = JSON.stringify([values, args]);
    const rendered = this.#rendered.get(key) ?? this.#render(values, args);
    this.#rendered.set(key, rendered);
    return rendered;
  }

  async #render(values: Values, args: readonly string[]): Promise<readonly Manifest[]> {
    return objectsOf(await this.templateText(values, ...args));
  }

  /** The same as YAML. */
  templateText(values: Values = {}, ...args: readonly string[]): Promise<string> {
    const version = ['--kube-version', kubernetesVersion()];
    return this.run(['template', 'nvr', CHART, '--namespace', 'video', ...version, ...args], values);
  }

  close(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }
}

export function objectsOf(text: string): readonly Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0]!;
    const object: unknown = document.toJS();
    return object === null ? [] : [object];
  });
}

/** The only one of these; throws when there are none or more. */
export function one(objects: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = ofKind(objects, kind).filter((object) => name === undefined || object.metadata.name === name);
  if (found.length !== 1) throw new Error(`${found.length} of ${kind} ${name ?? ''}`);
  return found[0];
}

export const ofKind = (objects: readonly Manifest[], kind: string): readonly Manifest[] =>
  objects.filter((object) => object.kind === kind);
