// A disk of one node as a PersistentVolume.

interface LocalVolume {
  readonly storageClass: string;
  readonly node: string;
  /** Of the directory that the disk is mounted to. */
  readonly path: string;
}

/** The volume and its class. Claims of the class are bound when their pod has a node. */
export const localVolume = ({
  storageClass,
  node,
  path,
}: LocalVolume): readonly Readonly<Record<string, unknown>>[] => [
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: storageClass },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `disk-of-${node}` },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: storageClass,
      local: { path },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] },
          ],
        },
      },
    },
  },
];
