// Keys of objects in etcd.

/** All keys of this product in etcd begin with it. */
const PREFIX = '/kube-nvr/';

/** The namespace of all objects of a cluster without Kubernetes. */
export const STORE_NAMESPACE = 'default';

/** `namespace` undefined: of all namespaces. The range of a collection is from this key up to `endOf` it. */
export const collectionKey = (plural: string, namespace: string | undefined): string =>
  `${PREFIX}objects/${plural}/${namespace === undefined ? '' : `${namespace}/`}`;

export const objectKey = (plural: string, namespace: string, name: string): string =>
  `${collectionKey(plural, namespace)}${name}`;

/** The first key after all keys that begin with `prefix`, which ends in a slash. */
export const endOf = (prefix: string): string => `${prefix.slice(0, -1)}0`;
