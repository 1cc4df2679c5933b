// What the OpenAPI document says about the API as a whole.

import type { About } from '../http/openapi.ts';
import { PARAMETERS } from './examples.ts';

const DESCRIPTION = `State and footage of a recorder node, and its control. Recordings are played from a separate listener: the paths of
playback name it as their server, and \`node.playback\` of a camera has its address.

Answers may have more fields in later versions, and enumerations more values. Times are ISO 8601 with an offset, or seconds since 1970 where a field says so.`;

const TAGS = [
  { name: 'session', description: 'Sign in and out.' },
  { name: 'health', description: 'For load balancers and orchestrators.' },
  { name: 'node', description: 'The machine and the process.' },
  { name: 'cameras', description: 'What the cameras do, and how they look.' },
  { name: 'live', description: 'Live streams.' },
  { name: 'events', description: 'What happens on the node, sent as it happens.' },
  { name: 'archive', description: 'Recorded footage, gaps and protections.' },
  { name: 'jobs', description: 'Movies made of the archive.' },
  { name: 'ptz', description: 'Cameras that turn and zoom.' },
  { name: 'cluster', description: 'The nodes that record together.' },
];

export const aboutApi = (version: string): About => ({
  title: 'Recorder',
  version,
  description: DESCRIPTION,
  tags: TAGS,
  parameters: PARAMETERS,
});
