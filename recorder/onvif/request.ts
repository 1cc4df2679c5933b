// Builds SOAP requests with the package `onvif`, which knows the operations of the device service, both media services and the PTZ
// service. We take each request from the package's event `rawRequest`; `Exchange` sends it and we parse the response. The package's
// own transport is not used: it has no size limit, may never call back when a connection breaks within a response, sends passwords
// and names unescaped, and converts every token or version that looks like a number to one.

import { Agent } from 'node:http';
import { Duplex } from 'node:stream';
import onvif from 'onvif';
import { serviceOf } from './services.ts';

export interface OnvifRequest {
  /** The service's name, such as `device`, `media2` or `ptz`. */
  readonly service: string;
  /** `<namespace>/<operation>`. */
  readonly action: string;
  /** XML of the operation: the content of the SOAP body. */
  readonly operation: string;
  /** Instead of the path of the service: of what the camera made for this client. */
  readonly path?: string;
  /** XML for the SOAP header. */
  readonly header?: string;
}

type OnvifOperations = Pick<
  InstanceType<typeof onvif.Cam>,
  | 'getSystemDateAndTime'
  | 'getServices'
  | 'getCapabilities'
  | 'getDeviceInformation'
  | 'getProfiles'
  | 'getStreamUri'
  | 'getSnapshotUri'
  | 'continuousMove'
  | 'stop'
  | 'getPresets'
  | 'gotoPreset'
  | 'getRecordingSummary'
  | 'getRecordingInformation'
  | 'getReplayUri'
>;

/** Calls one operation of the package. `ignore` has to be passed as the callback: the package requires one. */
export type Operation = (cam: OnvifOperations, ignore: () => void) => void;

/** Ends every request of the package before it reaches the network. */
class NoConnection extends Agent {
  override createConnection(...[, callback]: Parameters<Agent['createConnection']>): undefined {
    callback?.(new Error('the requests are sent by Exchange'), new Duplex());
  }
}

const BODY = /<s:Body[^>]*>(<(\w+) xmlns="([^"]+)".*)<\/s:Body>/s;

/** `media2`: media operations use the second media service. */
export function buildRequest(operation: Operation, media2: boolean): OnvifRequest {
  const cam = new onvif.Cam({ hostname: 'camera.invalid', autoconnect: false, agent: new NoConnection() });
  cam.media2Support = media2;
  let envelope = '';
  cam.once('rawRequest', (xml: string) => (envelope = xml));
  operation(cam, () => {});
  const [, content, name, namespace] = BODY.exec(envelope) ?? [];
  const service = serviceOf(namespace);
  if (content === undefined || service === undefined) throw new Error('the package onvif built no request');
  return { service, action: `${namespace}/${name}`, operation: content };
}
