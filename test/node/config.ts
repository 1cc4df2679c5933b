// What the programs of a real node read: addresses in, configuration files out; pure.
// Paths are those of the node: init.sh shows its directory there as /run/node.

interface NodeFacts {
  readonly name: string;
  readonly address: string;
  /** As `https://198.18.0.1:6443`. */
  readonly server: string;
  /** Of the control groups, at the root of each hierarchy. */
  readonly cgroup: string;
  readonly serviceRange: string;
  readonly podRange: string;
}

export const PAUSE_IMAGE = 'kube-nvr.test/pause:1';
export const CONTAINERD_SOCKET = '/run/containerd/containerd.sock';
const CNI_CONFIG = '/run/node/etc/cni';
const CLUSTER_DOMAIN = 'cluster.local';

/** Files below `etc/` by their names. */
export function configFiles(facts: NodeFacts): Readonly<Record<string, string>> {
  return {
    'containerd.toml': containerd(),
    'cni/10-node.conflist': json(podNetwork(facts)),
    'kubelet.yaml': json(kubelet(facts)),
    'kube-proxy.yaml': json(kubeProxy(facts)),
    Corefile: corefile(facts),
    // Of pods that want the node's names.
    'resolv.conf': '',
    'programs.sh': programs(facts),
  };
}

// JSON is YAML.
const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

const programs = ({ name, address }: NodeFacts): string => `
start /run/bin/kubelet --config=/run/node/etc/kubelet.yaml --kubeconfig=/run/node/etc/kubelet.kubeconfig \\
  --hostname-override=${name} --node-ip=${address}
start /run/bin/kube-proxy --config=/run/node/etc/kube-proxy.yaml --hostname-override=${name}
start /run/bin/coredns -conf /run/node/etc/Corefile
`;

const containerd = (): string => `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "${CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Root of a container or a virtual machine may lack CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${CNI_CONFIG}"
`;

/**
 * A link of its own for each pod rather than a bridge: then what one pod sends to another by a Service's address comes
 * back by the node, too, without br_netfilter, which is a module of the machine's kernel.
 */
const podNetwork = ({ podRange }: NodeFacts) => ({
  cniVersion: '0.4.0',
  name: 'pods',
  plugins: [
    {
      type: 'ptp',
      ipMasq: false,
      ipam: { type: 'host-local', ranges: [[{ subnet: podRange }]], routes: [{ dst: '0.0.0.0/0' }] },
    },
    { type: 'portmap', capabilities: { portMappings: true }, snat: true },
  ],
});

const kubelet = ({ address, cgroup }: NodeFacts) => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address,
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: '/run/node/etc/ca.crt' },
  },
  authorization: { mode: 'Webhook' },
  tlsCertFile: '/run/node/etc/kubelet.crt',
  tlsPrivateKeyFile: '/run/node/etc/kubelet.key',
  containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${cgroup}`,
  failCgroupV1: false,
  failSwapOn: false,
  clusterDNS: [address],
  clusterDomain: CLUSTER_DOMAIN,
  resolvConf: '/run/node/etc/resolv.conf',
  // The machine's disk is not the node's to judge, and nobody could bring an image back.
  evictionHard: { 'memory.available': '50Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
  imageGCHighThresholdPercent: 100,
  imageGCLowThresholdPercent: 99,
  volumePluginDir: '/var/lib/kubelet/volume-plugins',
});

const kubeProxy = ({ address, podRange }: NodeFacts) => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  bindAddress: address,
  mode: 'iptables',
  clusterCIDR: podRange,
  clientConnection: { kubeconfig: '/run/node/etc/kube-proxy.kubeconfig' },
  // Limits of the whole machine's kernel stay as they are.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  iptables: { minSyncPeriod: '100ms' },
});

const corefile = ({ address }: NodeFacts): string => `.:53 {
  bind ${address}
  ready ${address}:8181
  errors
  kubernetes ${CLUSTER_DOMAIN} {
    kubeconfig /run/node/etc/coredns.kubeconfig
    ttl 5
  }
}
`;

/** A kubeconfig that needs no other file. */
export const kubeconfigText = (
  server: string,
  files: { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer },
): string => {
  const base64 = (bytes: Buffer): string => bytes.toString('base64');
  return json({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64(files.ca) } }],
    users: [
      { name: 'user', user: { 'client-certificate-data': base64(files.cert), 'client-key-data': base64(files.key) } },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'user' } }],
    'current-context': 'test',
  });
};
