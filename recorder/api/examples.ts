// Values that examples of the OpenAPI document share; the examples themselves are beside their routes. The document's lint holds
// each example to the schema of its place.

export const TIME = '2026-11-21T09:30:00.000+00:00';
export const START = '2026-11-21T09:25:00.123+00:00';
export const FROM = 1_795_253_100;
export const FILENAME = '2026/11/21/Gate_gate_20261121_092500123.mp4';
export const JOB_ID = 'e3f0a1c2-5d6e-4f70-8192-a3b4c5d6e7f8';
const JOB_URL = `/api/archive/jobs/${JOB_ID}`;

export const SUBMITTED = { job_id: JOB_ID, status_url: JOB_URL, download_url: `${JOB_URL}/download` };

export const KEY = {
  algorithm: 'Ed25519',
  fingerprint: '7d2f0f2b3b6c9b6a1f0a5c3e0d8b7c6a5f4e3d2c1b0a99887766554433221100',
  public_key: `-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n`,
};

/** Examples of parameters by name, or by path and name. */
export const PARAMETERS: Readonly<Record<string, unknown>> = {
  camera_id: 'gate',
  '/api/cameras/{id} id': 'gate',
  '/api/cameras/{id}/settings id': 'gate',
  '/api/cameras/{id}/snapshot id': 'gate',
  '/api/cameras/{id}/thumbnail id': 'gate',
  '/api/archive/protections/{id} id': 'p-5b1f0c9e',
  job_id: JOB_ID,
  from: FROM,
  to: FROM + 600,
  tz_offset_minutes: 60,
  speed: 10,
  note: 'the red car',
  who: 'ops',
  what: 'export',
  camera: 'gate',
  '/api/archive/timeline camera': ['gate', 'dock-1'],
  '/api/reports/{month} camera': ['gate', 'dock-1'],
  '/api/events/search camera': ['gate', 'dock-1'],
  resolution_ms: 1_000,
  at: FROM + 4.5,
  width: 640,
  month: '2026-10',
  tz: 'Europe/Berlin',
  limit: 100,
  cursor: '4001-250112',
};
