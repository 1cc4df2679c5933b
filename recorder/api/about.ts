// What the OpenAPI document says of the API as a whole.

import type { About } from '../http/openapi.ts';
import { ANSWERS, PARAMETERS, REQUESTS } from './examples.ts';

const DESCRIPTION = `What a recorder node does and knows. Its recordings are played from a listener of their own: its paths name
it as their server, and \`node.playback\` of a camera says where it is.

Answers may have more fields in later versions, and enumerations more values. Times are ISO 8601 with an offset, or seconds since 1970 where a field says so.`;

const TAGS = [
  { name: 'health', description: 'For load balancers and orchestrators.' },
  { name: 'node', description: 'The machine and the process.' },
  { name: 'cameras', description: 'What the cameras do, and how they look.' },
  { name: 'live', description: 'Live streams.' },
  { name: 'events', description: 'What happens, told as it happens.' },
  { name: 'archive', description: 'What is recorded, what is missing, and what is kept.' },
  { name: 'jobs', description: 'Movies made of the archive.' },
  { name: 'ptz', description: 'Cameras that turn and zoom.' },
  { name: 'cluster', description: 'The nodes that record together.' },
];

export const aboutApi = (version: string): About => ({
  title: 'Recorder',
  version,
  description: DESCRIPTION,
  tags: TAGS,
  examples: { parameters: PARAMETERS, requests: REQUESTS, answers: ANSWERS },
});
