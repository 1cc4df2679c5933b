// `spec.podTemplate` of a RecorderPool: what the networks and rules of a cluster need in the pods of recorders, in the form that
// a pod has it, and the claims of its nodes. Fields are named one by one, so that a typing error is refused, and none of them can name a Secret.

import { z } from 'zod';
import { formed, integer, listMap, listSet, resources, stringMap, withRules, type Immutable } from './schema-parts.ts';

/** Checked by the API server when the operator applies the DaemonSet. */
const openObject = () => z.record(z.string(), z.unknown()).meta({ 'x-kubernetes-preserve-unknown-fields': true });

const profile = () =>
  z.object({
    type: z
      .enum(['RuntimeDefault', 'Localhost', 'Unconfined'])
      .describe('RuntimeDefault: that of the container runtime. Localhost: one of the node. Unconfined: none.'),
    localhostProfile: z.string().min(1).max(1024).optional().describe('With type Localhost: name of the profile.'),
  });

const securityContext = z.object({
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
  supplementalGroups: listSet(integer(0, 2 ** 31 - 1), 32)
    .optional()
    .describe('Groups of the recorder in addition to 65532.'),
  fsGroup: integer(0, 2 ** 31 - 1)
    .optional()
    .describe('Group that volumes of claims are given to.'),
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
        .describe('The network of the node, as discovery of cameras needs it. NetworkPolicies do not apply there.'),
      dnsPolicy: z
        .enum(['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'])
        .optional()
        .describe('Default: ClusterFirst; with hostNetwork, ClusterFirstWithHostNet.'),
      dnsConfig: openObject().optional().describe('DNS of the pods, as in a pod.'),
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
        .describe('Affinity, as in a pod. Nodes that its required nodeAffinity excludes are not part of the pool.'),
      schedulerName: z.string().max(253).optional().describe('The scheduler that places the pods.'),
      runtimeClassName: z.string().max(253).optional().describe('The RuntimeClass of the pods.'),
      securityContext: securityContext.optional().describe('Security context of the pods.'),
      containers: listMap(
        z.object({
          name: formed(z.string().max(63), /^recorder$/, 'must be recorder').describe('recorder.'),
          env: listMap(env, 64, 'name').optional().describe('Environment variables, such as TZ.'),
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
