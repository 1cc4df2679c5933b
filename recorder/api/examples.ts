// Examples of parameters, bodies and answers for the OpenAPI document: its lint holds each to the schema of its place.

const TIME = '2026-11-21T09:30:00.000+00:00';
const START = '2026-11-21T09:25:00.123+00:00';
const FROM = 1_795_253_100;
const FILENAME = '2026/11/21/Gate_gate_20261121_092500123.mp4';
const DONE = { status: 'ok', message: 'the camera moves' };
const JOB_ID = 'e3f0a1c2-5d6e-4f70-8192-a3b4c5d6e7f8';
const JOB_URL = `/api/archive/jobs/${JOB_ID}`;

const SUBMITTED = { job_id: JOB_ID, status_url: JOB_URL, download_url: `${JOB_URL}/download` };

const JOB = {
  job_id: JOB_ID,
  camera_id: 'gate',
  from: FROM,
  to: FROM + 600,
  from_ms: FROM * 1000,
  to_ms: (FROM + 600) * 1000,
  created_at: FROM + 900,
  completed_at: FROM + 903,
  expires_at: FROM + 903 + 3_600,
  is_expired: false,
  kind: 'export',
  state: 'done',
  progress: 100,
  size_bytes: 297_411_002,
  duration_seconds: 588.4,
  gaps: [{ start: '2026-11-21T09:28:00.000+00:00', end: '2026-11-21T09:28:11.600+00:00' }],
  manifest_url: `${JOB_URL}/manifest`,
  signature_url: `${JOB_URL}/signature`,
};

const KEY = {
  algorithm: 'Ed25519',
  fingerprint: '7d2f0f2b3b6c9b6a1f0a5c3e0d8b7c6a5f4e3d2c1b0a99887766554433221100',
  public_key: `-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n`,
};

const MANIFEST = {
  format: 'kube-nvr-manifest-1',
  kind: 'export',
  from: '2026-11-21T09:25:00.000Z',
  to: '2026-11-21T09:35:00.000Z',
  made_at: '2026-11-21T09:40:03.512Z',
  software: 'kube-nvr 0.1.0',
  node: 'rack-1',
  key: KEY,
  cameras: [
    {
      camera_id: 'gate',
      files: [
        {
          from: '2026-11-21T09:25:00.000Z',
          to: '2026-11-21T09:35:00.000Z',
          name: 'gate_20261121T092500Z.mp4',
          size_bytes: 297_411_002,
          sha256: '0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0',
          duration_seconds: 588.4,
          footage: [
            {
              from: '2026-11-21T09:25:00.000Z',
              to: '2026-11-21T09:28:00.000Z',
              movie_from_seconds: 0,
              movie_to_seconds: 180,
            },
            {
              from: '2026-11-21T09:28:11.600Z',
              to: '2026-11-21T09:35:00.000Z',
              movie_from_seconds: 180,
              movie_to_seconds: 588.4,
            },
          ],
        },
      ],
      gaps: [{ from: '2026-11-21T09:28:00.000Z', to: '2026-11-21T09:28:11.600Z', cause: 'camera-unreachable' }],
    },
  ],
};

const PROTECTION = {
  id: 'p-5b1f0c9e',
  camera_id: 'gate',
  from: START,
  to: TIME,
  from_ms: Date.parse(START),
  to_ms: Date.parse(TIME),
  created: TIME,
  note: 'the red car',
  until: TIME,
  segments: 2,
};

const PROBE = {
  seconds: 30,
  state: 'recording',
  transport: 'tcp',
  server: 'Rtsp Server/3.0',
  login: ['Digest MD5'],
  methods: ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY', 'TEARDOWN', 'GET_PARAMETER'],
  session_timeout: '60',
  answers: [
    { method: 'DESCRIBE', status: 200, ms: 12 },
    { method: 'SETUP', status: 200, ms: 4 },
    { method: 'PLAY', status: 200, ms: 9 },
  ],
  unanswered: [],
  streams: [
    {
      kind: 'video',
      encoding: 'H264',
      clock_rate: 90_000,
      payload_types: [{ payload_type: 96, packets: 9_312 }],
      announced_payload_type: 96,
      packets: 9_312,
      bits_per_second: 4_012_345,
      frames: 752,
      frame_rate: 25.01,
      stamp_rate: 25.01,
      key_frame_seconds: { usual: 2, longest: 2 },
      b_frames: false,
      clock_ratio: 1.00002,
      delay_ms: { median: 3.1, p95: 11.4, worst: 64.2 },
      bunched: 0.011,
      marker: 'last-packet',
      sources: 1,
      source_changes: 0,
      lost: 0,
      duplicates: 0,
      reordered: 0,
      sequence_restarts: 0,
      malformed: 0,
      stamp_jumps: 0,
      sender_reports: 6,
      first_report_after_ms: 14,
      clock_offset_ms: 312,
      byes: 0,
    },
  ],
  not_recorded: [{ kind: 'application', encoding: 'VND.ONVIF.METADATA', payload_type: 107 }],
  recorded: { video: { codec: 'avc1.64001f', width: 1920, height: 1080 } },
  runs_ended: [],
  rows: [{ row: 37, seen: 'metadata' }],
};

const PACKETS = {
  received: 14_090,
  lost: 0,
  late: 0,
  not_rtp: 0,
  other_source: 0,
  other_payload_type: 0,
  sequence_restarts: 0,
  faults: [],
  last_fault: null,
};

const VIDEO_PACKETS = {
  ...PACKETS,
  received: 90_144,
  faults: [{ code: 'fragment-without-start', message: 'fragments without the first one', count: 2 }],
  last_fault: {
    code: 'fragment-without-start',
    time: TIME,
    ssrc: '0x1a2b3c4d',
    sequence_number: 4_711,
    rtsp_channel: 0,
    udp_port: null,
  },
};

const CAMERA = {
  id: 'gate',
  name: 'Gate',
  state: 'recording',
  state_since: START,
  reason: null,
  node: { name: 'rack-1', address: 'rack-1.example:9997', playback: 'http://rack-1.example:9996' },
  transport: 'tcp',
  ptz: false,
  codecs: {
    video: { codec: 'h264', codec_string: 'avc1.64001f', width: 1920, height: 1080 },
    video_remark: null,
    audio: { codec: 'aac', codec_string: 'mp4a.40.2', sample_rate: 48_000, channels: 1 },
    mime: 'video/mp4; codecs="avc1.64001f, mp4a.40.2"',
    audio_dropped: null,
  },
  not_recorded: [
    {
      kind: 'application',
      codec: 'VND.ONVIF.METADATA',
      reason: { code: 'no-media', message: 'only video and audio are recorded' },
    },
  ],
  bitrate: 4_012_345,
  last_frame: TIME,
  frames: { video: 7_512, audio: 14_090, discarded: 2, lost_packets: 0 },
  packet_counts: { video: VIDEO_PACKETS, audio: PACKETS, skipped_bytes: 0 },
  recording: { state: 'writing', reason: null, last_written: TIME, filename: FILENAME },
  silent: false,
  silent_since: null,
  viewers: 1,
};

const SETTINGS = {
  id: 'gate',
  name: 'Gate',
  source: 'rtsp://admin@10.0.0.9/stream1',
  record: { retention: { maxAge: '30d' } },
};

const AUDIT_LINE = {
  n: 4_711,
  time: '2026-11-21T09:35:12.000Z',
  node: 'rack-1',
  what: 'export',
  caller: 'ops',
  role: 'operator',
  method: 'POST',
  route: '/api/archive/:camera_id/export',
  path: '/api/archive/gate/export',
  camera: 'gate',
  from: '2026-11-21T09:25:00.000Z',
  to: '2026-11-21T09:35:00.000Z',
  job: JOB_ID,
  address: '10.0.0.7',
  status: 202,
  outcome: 'done',
  requestId: '6ad25f8b-db37-449d-b999-aed8fcac6bf0',
  prev: '7d2f0f2b3b6c9b6a1f0a5c3e0d8b7c6a5f4e3d2c1b0a99887766554433221100',
};

const LOGGING = { level: 'info', configured: 'info' };

const NODES = {
  leader: 'rack-1',
  has_majority: true,
  voters: ['rack-1', 'rack-2', 'rack-3'],
  nodes: [
    {
      node_id: 'rack-1',
      node_name: 'rack-1',
      address: 'rack-1.example:9997',
      role: 'voter',
      online: true,
      last_seen_seconds: 0.8,
      cameras: 20,
      version: '0.1.0',
    },
  ],
};

const CLUSTER_CAMERAS = {
  node_id: 'rack-1',
  current: true,
  nodes: [
    {
      node_id: 'rack-2',
      url: 'https://rack-2.example:9997',
      playback: 'https://rack-2.example:9996',
      online: true,
      last_seen_seconds: 1.2,
    },
  ],
  cameras: [
    {
      id: 'gate',
      name: 'Front gate',
      node_id: 'rack-2',
      epoch: 4,
      state: 'recording',
      reason: null,
      last_written: '2026-11-21T12:00:03.000+00:00',
      archives: [
        { node_id: 'rack-2', oldest: '2026-11-14T12:00:00.000+00:00', newest: '2026-11-21T12:00:00.000+00:00' },
      ],
    },
  ],
};

const CHANGED = { status: 'ok', message: 'rack-4 is a learner' };

/** By name, or by path and name. */
export const PARAMETERS: Readonly<Record<string, unknown>> = {
  camera_id: 'gate',
  '/api/cameras/{id} id': 'gate',
  '/api/cameras/{id}/settings id': 'gate',
  '/api/cameras/{id}/snapshot id': 'gate',
  '/api/cameras/{id}/thumbnail id': 'gate',
  '/api/archive/protections/{id} id': PROTECTION.id,
  job_id: JOB_ID,
  from: FROM,
  to: FROM + 600,
  tz_offset_minutes: 60,
  speed: 10,
  note: PROTECTION.note,
  who: 'ops',
  what: 'export',
  camera: 'gate',
  limit: 100,
  cursor: '4001-250112',
};

/** By method and path. */
export const REQUESTS: Readonly<Record<string, unknown>> = {
  'PUT /api/log': { level: 'debug' },
  'POST /api/cameras': { ...SETTINGS, source: 'rtsp://admin:secret@10.0.0.9/stream1' },
  'POST /api/cameras/test': { source: 'rtsp://admin:secret@10.0.0.9/stream1' },
  'PUT /api/cameras/{id}': SETTINGS,
  'POST /cameras/start': { id: 'gate' },
  'POST /cameras/stop': { id: 'gate' },
  'POST /api/cases': { name: 'Theft at the gate', cameras: ['gate', 'hall'], from: FROM, to: FROM + 600 },
  'POST /api/archive/{camera_id}/assemble': {
    kind: 'export',
    parts: [{ peer_addr: 'rack-2.example:9997', peer_job_id: JOB_ID, ordinal: 0 }],
  },
  'POST /api/ptz/move': { camera_id: 'gate', pan: 0.5, tilt: 0, zoom: 0, speed: 1 },
  'POST /api/ptz/stop': { camera_id: 'gate' },
  'POST /api/ptz/goto': { camera_id: 'gate', preset: '1' },
  'POST /cluster/add-learner': { node_id: 'rack-4' },
  'POST /cluster/change-membership': { voters: ['rack-1', 'rack-2', 'rack-4'] },
  'POST /cluster/remove-node': { node_id: 'rack-3' },
  'POST /cluster/leave': {},
};

/** By method, path and status. */
export const ANSWERS: Readonly<Record<string, unknown>> = {
  'GET /api/health/live 200': { status: 'live' },
  'GET /api/health/ready 200': {
    status: 'ready',
    version: '0.1.0',
    timestamp: TIME,
    checks: {
      storage: { configured: true, reachable: true },
      cluster_store: { configured: false },
      recordings_dir: { path: '/var/lib/recorder/recordings', writable: true },
      license: { valid: true },
    },
    warnings: [],
    silent_cameras: [],
  },
  'GET /api/health/ready 503': { status: 'not_ready', version: '0.1.0', timestamp: TIME },
  'GET /api/metrics 200': {
    online: true,
    node_name: 'rack-1',
    cpu_load: 7,
    mem_used_gb: 3,
    mem_total_gb: 16,
    storage_free_gb: 1_210,
    storage_total_gb: 3_726,
    storage_used_gb: 2_513,
    timestamp: TIME,
  },
  'GET /api/audit 200': {
    lines: [AUDIT_LINE],
    next: '4001-250112',
    end: { n: 4_712, sha256: '0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0' },
  },
  'GET /api/log 200': LOGGING,
  'PUT /api/log 200': LOGGING,
  'GET /api/cameras 200': { cameras: [CAMERA], warnings: [] },
  'GET /api/cameras/{id} 200': CAMERA,
  'GET /api/cameras/{id}/probe 200': PROBE,
  'POST /api/cameras 201': SETTINGS,
  'POST /api/cameras/test 200': PROBE,
  'GET /api/cameras/{id}/settings 200': SETTINGS,
  'PUT /api/cameras/{id} 200': SETTINGS,
  'DELETE /api/cameras/{id} 200': {
    status: 'ok',
    message: 'gate is not recorded any more; its recordings stay until archive.retention removes them',
  },
  'POST /cameras/start 200': { status: 'ok', started: 1 },
  'POST /cameras/stop 200': { status: 'ok', stopped: 1 },
  'GET /api/archive/{camera_id}/segments 200': {
    archive: [
      {
        timestamp: START,
        start_ms: Date.parse(START),
        end: new Date(Date.parse(START) + 299_960).toISOString().replace('Z', '+00:00'),
        end_ms: Date.parse(START) + 299_960,
        duration_seconds: 299.96,
        sequence: 41,
        filename: FILENAME,
        size: 149_812_340,
        mtime: FROM + 300,
        is_open: false,
      },
    ],
    days: ['2026-11-20', '2026-11-21'],
  },
  'GET /api/archive/{camera_id}/current 200': {
    camera_id: 'gate',
    filename: FILENAME,
    start: START,
    start_ms: Date.parse(START),
    size: 71_303_168,
  },
  'GET /api/archive/{camera_id}/gaps 200': {
    camera_id: 'gate',
    from: START,
    to: TIME,
    from_ms: Date.parse(START),
    to_ms: Date.parse(TIME),
    known_until: TIME,
    known_until_ms: Date.parse(TIME),
    gaps: [
      {
        start: '2026-11-21T09:28:00.000+00:00',
        end: '2026-11-21T09:28:11.600+00:00',
        start_ms: Date.parse('2026-11-21T09:28:00.000+00:00'),
        end_ms: Date.parse('2026-11-21T09:28:11.600+00:00'),
        seconds: 11.6,
        cause: 'camera-unreachable',
        is_open: false,
      },
    ],
    wanted_seconds: 299.877,
    recorded_seconds: 288.277,
    missing_seconds: 11.6,
    seconds_by_cause: { 'camera-unreachable': 11.6 },
    degraded: [
      {
        start: '2026-11-21T09:29:00.012+00:00',
        end: '2026-11-21T09:30:00.011+00:00',
        start_ms: Date.parse('2026-11-21T09:29:00.012+00:00'),
        end_ms: Date.parse('2026-11-21T09:30:00.011+00:00'),
        lost_frames: 30,
        expected_frames: 1_500,
        lost_share: 0.02,
      },
    ],
  },
  'POST /api/archive/{camera_id}/protect 201': PROTECTION,
  'GET /api/archive/{camera_id}/protections 200': { protections: [PROTECTION] },
  'GET /api/archive/protections 200': { protections: [PROTECTION] },
  'POST /api/archive/{camera_id}/export 200': {
    camera_id: 'gate',
    from: FROM,
    to: FROM + 600,
    from_ms: FROM * 1000,
    to_ms: (FROM + 600) * 1000,
    duration_seconds: 588.4,
    size_bytes: 297_400_000,
    gaps: JOB.gaps,
  },
  'POST /api/archive/{camera_id}/export 202': SUBMITTED,
  'POST /api/archive/{camera_id}/timelapse 202': SUBMITTED,
  'POST /api/archive/{camera_id}/assemble 202': SUBMITTED,
  'POST /api/cases 202': SUBMITTED,
  'GET /api/keys 200': { node: 'rack-1', keys: [KEY] },
  'GET /api/archive/jobs 200': { jobs: [JOB] },
  'GET /api/archive/jobs/{job_id} 200': JOB,
  'GET /api/archive/jobs/{job_id}/manifest 200': MANIFEST,
  'GET /api/archive/jobs/{job_id}/download 202': {
    job_id: JOB_ID,
    camera_id: 'gate',
    from: FROM,
    to: FROM + 600,
    from_ms: FROM * 1000,
    to_ms: (FROM + 600) * 1000,
    created_at: FROM + 900,
    kind: 'export',
    state: 'running',
    progress: 42,
  },
  'POST /api/ptz/move 200': DONE,
  'POST /api/ptz/stop 200': { ...DONE, message: 'the camera stands still' },
  'POST /api/ptz/goto 200': { ...DONE, message: 'the camera goes to the preset' },
  'GET /api/ptz/presets 200': { presets: [{ token: '1', name: 'Gate' }] },
  'GET /cluster/cameras 200': CLUSTER_CAMERAS,
  'GET /cluster/metrics 200': NODES,
  'POST /cluster/add-learner 200': CHANGED,
  'POST /cluster/change-membership 200': CHANGED,
  'POST /cluster/remove-node 200': CHANGED,
  'POST /cluster/leave 200': CHANGED,
};
