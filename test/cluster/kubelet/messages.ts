// What a process kubelet is told when it is started, and what it and the test say to each other afterwards.

/** The file that is its only argument, in JSON. */
export interface KubeletConfig {
  readonly nodeName: string;
  /** Of the node and of all its pods. */
  readonly address: string;
  readonly server: string;
  readonly labels: Readonly<Record<string, string>>;
  /** As `{cpu: '4', memory: '8Gi', pods: '110'}`. */
  readonly capacity: Readonly<Record<string, string>>;
  readonly version: string;
  /** PEM files; the certificate is for the API server (`system:node:…`) and for those who ask the kubelet. */
  readonly files: { readonly ca: string; readonly cert: string; readonly key: string };
  /** The node's disk. */
  readonly root: string;
  readonly podsDirectory: string;
  /** JSON of `Images`, read again whenever a container is started. */
  readonly imagesFile: string;
}

/** From the test. */
export type KubeletRequest = { readonly id: number } & (
  | { readonly kind: 'processes' }
  | {
      readonly kind: 'signal';
      readonly namespace: string;
      readonly pod: string;
      readonly container: string | undefined;
      readonly signal: NodeJS.Signals;
    }
);

/** A container that runs; `pid` is that of the kubelet's PID namespace. */
export interface ContainerOfPod {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly pid: number;
}

/** To the test. */
export type KubeletMessage =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'registered' }
  | {
      readonly kind: 'answer';
      readonly id: number;
      readonly processes: readonly ContainerOfPod[];
      readonly error?: string;
    };
