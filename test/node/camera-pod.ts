// RTSP servers of GStreamer as a pod: they run this machine's programs in a container that has none of its own.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GstreamerCamera } from '../support/gstreamer-cameras.ts';
import { MACHINE_IMAGE, MACHINE_PATHS } from './images.ts';

const SCRIPT = join(import.meta.dirname, '../../demo/cameras.py');
const FIRST_PORT = 8554;
const NAME = 'cameras';

/** The objects, for `kubectl apply`: a pod that serves all of them, and its Service. */
export function cameraPod(namespace: string, cameras: readonly GstreamerCamera[]): readonly object[] {
  const metadata = { name: NAME, namespace };
  const ports = cameras.map(({ name }, i) => ({ name, port: FIRST_PORT + i }));
  const mounts = MACHINE_PATHS.map((path, i) => ({ name: `machine-${i}`, path }));
  const served = cameras.map((camera, i) => ({ ...camera, port: FIRST_PORT + i }));
  const command = [
    '/usr/bin/python3',
    '/script/cameras.py',
    '--address',
    '0.0.0.0',
    '--config',
    '/script/cameras.json',
  ];
  const container = {
    name: NAME,
    image: MACHINE_IMAGE,
    command,
    env: [{ name: 'HOME', value: '/tmp' }],
    readinessProbe: { tcpSocket: { port: ports.at(-1)?.port }, periodSeconds: 1 },
    volumeMounts: [
      { name: 'script', mountPath: '/script' },
      ...mounts.map(({ name, path }) => ({ name, mountPath: path, readOnly: true })),
    ],
  };
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata,
      data: { 'cameras.py': readFileSync(SCRIPT, 'utf8'), 'cameras.json': JSON.stringify(served) },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, labels: { app: NAME } },
      spec: {
        terminationGracePeriodSeconds: 1,
        automountServiceAccountToken: false,
        containers: [container],
        volumes: [
          { name: 'script', configMap: { name: NAME } },
          ...mounts.map(({ name, path }) => ({ name, hostPath: { path } })),
        ],
      },
    },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: NAME }, ports } },
  ];
}

/** By the name of the Service: media has to come inside the RTSP connection (`transport: Tcp`). */
export const cameraUrl = (namespace: string, cameras: readonly GstreamerCamera[], name: string): string => {
  const index = cameras.findIndex((camera) => camera.name === name);
  return `rtsp://${NAME}.${namespace}.svc.cluster.local:${FIRST_PORT + index}/${name}`;
};
