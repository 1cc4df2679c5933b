// `spec.podTemplate` of a RecorderPool: what the networks and policies of a cluster require in the pods of recorders,
// in the form of a pod spec, and the claims of its nodes. Fields are named one by one, so that a typing error is
// refused, and none of them can name a Secret.

import { z } from 'zod';
import {
  formed,
  integer,
  listMap,
  listSet,
  podQuantity,
  resources,
  stringMap,
  withRules,
  type Immutable,
} from './schema-parts.ts';

/** Checked by the API server when the operator applies the DaemonSet. */
const openObject = () => z.record(z.string(), z.unknown()).meta({ 'x-kubernetes-preserve-unknown-fields': true });

const profile = () =>
  z.object({
    type: z
      .enum(['RuntimeDefault', 'Localhost', 'Unconfined'])
      .describe('RuntimeDefault: that of the container runtime. Localhost: one of the node. Unconfined: none.'),
    localhostProfile: z.string().min(1).max(1024).optional().describe('With type Localhost: name of the profile.'),
  });

/** What pods and containers have in common. */
const confinement = {
  seLinuxOptions: z
    .object({
      user: z.string().max(256).optional().describe('The user.'),
      role: z.string().max(256).optional().describe('The role.'),
      type: z.string().max(256).optional().describe('The type.'),
      level: z.string().max(256).optional().describe('The level.'),
    })
    .optional()
    .describe('SELinux labels of the containers.'),
  appArmorProfile: profile().optional().describe('The AppArmor profile of the containers.'),
  seccompProfile: profile().optional().describe('The seccomp profile of the containers. Default: RuntimeDefault.'),
};

const securityContext = z.object({
  ...confinement,
  supplementalGroups: listSet(integer(0, 2 ** 31 - 1), 32)
    .optional()
    .describe('Additional groups of the recorder, besides 65532.'),
  fsGroup: integer(0, 2 ** 31 - 1)
    .optional()
    .describe('Group that owns the volumes of claims.'),
});

const capabilities = () => listSet(z.string().max(64), 64).optional();

const containerSecurityContext = z.object({
  ...confinement,
  readOnlyRootFilesystem: z.boolean().optional().describe('Default: true.'),
  capabilities: z
    .object({
      add: capabilities().describe('Additional capabilities. They have an effect only with runAsUser: 0.'),
      drop: capabilities().describe('Default: ALL.'),
    })
    .optional()
    .describe('Linux capabilities.'),
});

/** The volumes that the operator makes. */
export const OWN_VOLUMES = [
  'archive',
  'state',
  'storage',
  'config',
  'tmp',
  'token',
  'tls',
  'tokens',
  'session',
  'license',
  'webhooks',
  'audit',
] as const;

const absolutePath = (example: string) =>
  withRules(
    formed(
      z.string().max(512),
      /^\/[^\p{Cc}:]*[^/\p{Cc}:]$/u,
      `must be an absolute path such as ${example}, without / at its end`,
    ),
    { rule: "!self.split('/').exists(part, part == '..')", message: 'must not contain ..' },
  );

const volumeName = () =>
  formed(
    z.string().max(63),
    /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
    'must have only lower-case letters, digits and "-", with a letter or digit at both ends',
  ).describe('Its name.');

const SOURCES = ['configMap', 'emptyDir', 'hostPath', 'persistentVolumeClaim'] as const;

const volume = withRules(
  z.object({
    name: volumeName(),
    configMap: z
      .object({
        name: z.string().min(1).max(253).describe('Name of the ConfigMap.'),
        optional: z.boolean().optional().describe('The pods start without it, too.'),
      })
      .optional()
      .describe('Files of a ConfigMap, such as certificates of a CA.'),
    emptyDir: z
      .object({
        medium: z.enum(['Memory']).optional().describe('Memory: in the memory of the pod.'),
        sizeLimit: podQuantity()
          .optional()
          .describe('The most that the directory may hold; a pod that exceeds it is evicted.'),
      })
      .optional()
      .describe('An empty directory of the pod.'),
    hostPath: z
      .object({
        path: absolutePath('/dev/dri').describe('The path on the node.'),
        type: z
          .enum(['DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice'])
          .optional()
          .describe('What must exist at the path. Default: it is not checked.'),
      })
      .optional()
      .describe('A file or directory of the node.'),
    persistentVolumeClaim: z
      .object({
        claimName: z.string().min(1).max(253).describe('Name of the claim, which all nodes of the pool can mount.'),
        readOnly: z.boolean().optional().describe('Mount it read-only.'),
      })
      .optional()
      .describe('A claim.'),
  }),
  {
    rule: `[${SOURCES.map((source) => `has(self.${source})`).join(', ')}].filter(is, is).size() == 1`,
    message: `needs one of ${SOURCES.join(', ')}`,
  },
  {
    rule: `!(self.name in [${OWN_VOLUMES.map((name) => `'${name}'`).join(', ')}])`,
    message: 'is the name of a volume of the operator',
    fieldPath: '.name',
  },
);

const volumeMount = z.object({
  name: volumeName().describe('Name of the volume.'),
  mountPath: absolutePath('/etc/ssl/cameras').describe('Where the recorder sees it.'),
  subPath: formed(z.string().max(512), /^[^/]/, 'must be a path without / at its beginning')
    .optional()
    .describe('A path in the volume. Default: the whole volume.'),
  readOnly: z.boolean().optional().describe('Mount it read-only.'),
});

const env = withRules(
  z.object({
    name: formed(
      z.string().max(256),
      /^[A-Za-z_][A-Za-z0-9_]*$/,
      'must have only letters, digits and "_", and begin with no digit',
    ).describe('Its name.'),
    value: z.string().max(4096).default('').describe('Its value.'),
  }),
  {
    rule: "!self.name.startsWith('KUBE_NVR_') && !(self.name in ['POD_IP', 'HOST_IP', 'NODE_COMPILE_CACHE'])",
    message: 'is set by the operator',
    fieldPath: '.name',
  },
);

export const podTemplate = z.object({
  metadata: z
    .object({
      labels: stringMap(64, 63).optional().describe('Labels in addition to those of the operator.'),
      annotations: stringMap(64, 65_536)
        .optional()
        .describe('Annotations, such as k8s.v1.cni.cncf.io/networks for a network of cameras.'),
    })
    .optional(),
  spec: z
    .object({
      hostNetwork: z
        .boolean()
        .optional()
        .describe(
          'true: the pods use the network of the node, which the discovery of cameras needs. NetworkPolicies do not apply to them.',
        ),
      dnsPolicy: z
        .enum(['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'])
        .optional()
        .describe('Default: ClusterFirst; with hostNetwork, ClusterFirstWithHostNet.'),
      dnsConfig: openObject().optional().describe('DNS settings, as in the spec of a pod.'),
      hostAliases: listMap(
        z.object({
          ip: z.string().max(45).describe('The address.'),
          hostnames: listSet(z.string().max(253), 32).describe('Its names.'),
        }),
        64,
        'ip',
      )
        .optional()
        .describe('Lines for /etc/hosts.'),
      affinity: openObject()
        .optional()
        .describe(
          'Affinity, as in the spec of a pod. Nodes that its required nodeAffinity excludes are not part of the pool.',
        ),
      schedulerName: z.string().max(253).optional().describe('The scheduler that places the pods.'),
      runtimeClassName: z.string().max(253).optional().describe('The RuntimeClass of the pods.'),
      securityContext: securityContext.optional().describe('Security context of the pods.'),
      volumes: listMap(volume, 16, 'name').optional().describe('Volumes in addition to those of the operator.'),
      containers: listMap(
        z.object({
          name: formed(z.string().max(63), /^recorder$/, 'must be recorder').describe('recorder.'),
          env: listMap(env, 64, 'name').optional().describe('Environment variables, such as TZ.'),
          volumeMounts: listMap(volumeMount, 16, 'mountPath').optional().describe('Where volumes are mounted.'),
          securityContext: containerSecurityContext.optional().describe('Security context of the container.'),
        }),
        1,
        'name',
      )
        .optional()
        .describe('What is added to the container of the recorder.'),
    })
    .optional(),
});

/** What a PersistentVolumeClaim for each node is made from. */
export const volumeClaimTemplate = z.object({
  metadata: z
    .object({
      labels: stringMap(64, 63).optional().describe('Labels of the claims.'),
      annotations: stringMap(64, 65_536).optional().describe('Annotations of the claims.'),
    })
    .optional(),
  spec: z
    .object({
      storageClassName: z
        .string()
        .max(253)
        .optional()
        .describe("Class of the volumes, with volumeBindingMode WaitForFirstConsumer. Default: the cluster's own."),
      accessModes: listSet(z.enum(['ReadWriteOnce', 'ReadWriteOncePod']), 2)
        .default(['ReadWriteOnce'])
        .describe('How a volume may be mounted: by one node, or one pod.'),
      resources: resources().describe('requests.storage is the size of each volume. It may grow.'),
    })
    .describe('As the spec of a PersistentVolumeClaim.'),
});

export type PodTemplate = Immutable<z.output<typeof podTemplate>>;
