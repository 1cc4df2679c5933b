// Where a camera has its ONVIF services, from its answers to GetServices and GetCapabilities.

import { childOf, childrenOf, textAt, type XmlElement } from '../../base/xml.ts';

/** Paths of the services by name: `media`, `media2`, `ptz`, … The hosts that a camera states are dropped. */
export type ServicePaths = ReadonlyMap<string, string>;

/** `http://www.onvif.org/ver20/ptz/wsdl` gives `ptz`; the second media service gives `media2`. */
export function serviceOf(namespace: string | undefined): string | undefined {
  const match = /^https?:\/\/www\.onvif\.org\/(ver\d+)\/(\w+)\//i.exec(namespace ?? '');
  if (!match) return undefined;
  const [, version, name = ''] = match;
  return name === 'media' && version === 'ver20' ? 'media2' : name.toLowerCase();
}

/** Whether a device with these services can be searched for what it recorded and replay it (ONVIF Profile G). */
export const hasMemory = (services: ReadonlySet<string>): boolean => services.has('search') && services.has('replay');

/** From the response to GetServices. */
export function servicePaths(answer: XmlElement): ServicePaths {
  const paths = new Map<string, string>();
  for (const service of childrenOf(answer, 'Service')) {
    const name = serviceOf(textAt(service, 'Namespace'));
    const path = pathOf(textAt(service, 'XAddr'));
    if (name !== undefined && path !== undefined && !paths.has(name)) paths.set(name, path);
  }
  return paths;
}

/** From the response to GetCapabilities. */
export function capabilityPaths(answer: XmlElement): ServicePaths {
  const paths = new Map<string, string>();
  for (const capability of childOf(answer, 'Capabilities')?.children ?? []) {
    const path = pathOf(textAt(capability, 'XAddr'));
    if (path !== undefined) paths.set(capability.name.toLowerCase(), path);
  }
  return paths;
}

/** The path of an address from the camera, whatever host it names. */
export function pathOf(address: string | undefined): string | undefined {
  if (address === undefined || !URL.canParse(address)) return undefined;
  const { protocol, pathname, search } = new URL(address);
  return protocol === 'http:' || protocol === 'https:' ? pathname + search : undefined;
}
