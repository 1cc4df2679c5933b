// The environment variables of a container, as core/v1 defines them.

import type { ApiClient } from '../api-client.ts';
import { keyedValues } from './keyed-values.ts';
import type { Container, EnvVar, Pod } from './types.ts';

/** What fields a pod can read of where it runs. */
export interface PodPlace {
  readonly nodeName: string;
  readonly address: string;
  readonly allocatable: Readonly<Record<string, string>>;
}

export interface EnvironmentDeps {
  readonly api: ApiClient;
  readonly place: PodPlace;
  /** Of every container, before its own: `PATH`, where the API server is. */
  readonly base: Readonly<Record<string, string>>;
}

/** Throws for what is referred to and not there. */
export async function containerEnvironment(
  container: Container,
  pod: Pod,
  deps: EnvironmentDeps,
): Promise<Record<string, string>> {
  const environment: Record<string, string> = { ...deps.base, HOSTNAME: pod.spec.hostname ?? pod.metadata.name };
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const reference = configMapRef ?? secretRef;
    if (!reference) continue;
    const resource = configMapRef ? 'configmaps' : 'secrets';
    for (const [key, value] of await keyedValues(deps.api, resource, pod.metadata.namespace, reference)) {
      environment[prefix + key] = value.toString();
    }
  }
  for (const variable of container.env ?? []) {
    const value = await variableValue(variable, pod, deps, environment);
    if (value !== undefined) environment[variable.name] = value;
  }
  return environment;
}

/** `$(NAME)` becomes the variable's value, `$$` a dollar, and what is unknown stays. */
export function expand(text: string, environment: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\(([^)]+)\)/g, (whole, name: string | undefined) =>
    name === undefined ? '$' : (environment[name] ?? whole),
  );
}

/** A field of the downward API. */
export function fieldValue(fieldPath: string, pod: Pod, place: PodPlace): string {
  const { metadata, spec } = pod;
  const keyed = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(fieldPath);
  if (keyed) return (keyed[1] === 'labels' ? metadata.labels : metadata.annotations)?.[keyed[2]!] ?? '';
  const fields: Readonly<Record<string, () => string>> = {
    'metadata.name': () => metadata.name,
    'metadata.namespace': () => metadata.namespace,
    'metadata.uid': () => metadata.uid,
    'metadata.labels': () => lines(metadata.labels),
    'metadata.annotations': () => lines(metadata.annotations),
    'spec.nodeName': () => place.nodeName,
    'spec.serviceAccountName': () => spec.serviceAccountName ?? 'default',
    'status.hostIP': () => place.address,
    'status.hostIPs': () => place.address,
    'status.podIP': () => place.address,
    'status.podIPs': () => place.address,
  };
  const field = fields[fieldPath];
  if (!field) throw new Error(`no field ${fieldPath}`);
  return field();
}

async function variableValue(
  { name, value, valueFrom }: EnvVar,
  pod: Pod,
  deps: EnvironmentDeps,
  environment: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  if (!valueFrom) return expand(value ?? '', environment);
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = valueFrom;
  if (fieldRef) return fieldValue(fieldRef.fieldPath, pod, deps.place);
  if (resourceFieldRef) return deps.place.allocatable[resourceFieldRef.resource.replace(/^(limits|requests)\./, '')];
  const reference = secretKeyRef ?? configMapKeyRef;
  if (!reference) throw new Error(`env ${name} has no source that is known here`);
  const found = (
    await keyedValues(deps.api, secretKeyRef ? 'secrets' : 'configmaps', pod.metadata.namespace, reference)
  ).get(reference.key);
  if (found === undefined && reference.optional !== true) {
    throw new Error(`couldn't find key ${reference.key} in ${pod.metadata.namespace}/${reference.name}`);
  }
  return found?.toString();
}

const lines = (map: Readonly<Record<string, string>> = {}): string =>
  Object.entries(map)
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .join('\n');
