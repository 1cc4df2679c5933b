// The settings of a camera as fields of a form, and back: a field that is empty is a setting that is left out.

/** As `GET /api/cameras/{id}/settings` answers. */
export type Settings = Readonly<Record<string, unknown>>;

interface FieldBase {
  /** The path in the settings, such as `record.retention.maxAge`; `user` and `password` are parts of `source`. */
  readonly path: string;
  readonly label: string;
  readonly note?: string;
}

export type Field = FieldBase &
  (
    | { readonly kind: 'text' | 'password' | 'number' | 'lines'; readonly placeholder?: string }
    | { readonly kind: 'check'; readonly usual: boolean }
    | { readonly kind: 'choice'; readonly choices: readonly (readonly [value: string, label: string])[] }
  );

interface Group {
  readonly title: string;
  /** Shown only when it is opened. */
  readonly isRare?: boolean;
  readonly fields: readonly Field[];
}

const text = (path: string, label: string, placeholder = '', note = ''): Field => ({
  path,
  label,
  kind: 'text',
  placeholder,
  note,
});
const check = (path: string, label: string, usual = false, note = ''): Field => ({
  path,
  label,
  kind: 'check',
  usual,
  note,
});

const AGE = 'For example 30d or 12h. Empty: no limit of its own.';
const SIZE = 'For example 500GiB.';

export const GROUPS: readonly Group[] = [
  {
    title: 'Camera',
    fields: [
      text('name', 'Name', 'Front gate'),
      text('group', 'Group', 'Entrance'),
      check('enabled', 'Record this camera', true),
    ],
  },
  {
    title: 'Stream',
    fields: [
      text('source', 'Address', 'rtsp://192.168.1.20/stream1', 'Without user and password.'),
      text('user', 'User'),
      { path: 'password', label: 'New password', kind: 'password', note: 'Empty: the stored password stays.' },
      {
        path: 'transport',
        label: 'Transport',
        kind: 'choice',
        choices: [
          ['', 'Automatic'],
          ['tcp', 'TCP'],
          ['udp', 'UDP'],
          ['multicast', 'Multicast'],
        ],
      },
    ],
  },
  {
    title: 'Recording',
    fields: [
      text('record.retention.maxAge', 'Keep for', '30d', AGE),
      text('record.retention.maxSize', 'Keep at most', '500GiB', SIZE),
    ],
  },
  {
    title: 'Second stream',
    isRare: true,
    fields: [
      text(
        'preview.source',
        'Address of the second stream',
        'rtsp://192.168.1.20/stream2',
        'A smaller stream, for walls and phones.',
      ),
      check('preview.recorded', 'Record the second stream, too'),
      text('preview.retention.maxAge', 'Keep the second stream for', '90d', AGE),
      text('preview.retention.maxSize', 'Keep at most of the second stream', '100GiB', SIZE),
      text('preview.retention.minFree', 'Free space that the second stream leaves', '10%'),
    ],
  },
  {
    title: 'Files',
    isRare: true,
    fields: [
      text('record.segmentDuration', 'Length of a file', '5m'),
      text('record.retention.minFree', 'Free space that this camera leaves', '10%'),
      {
        path: 'record.format',
        label: 'Format',
        kind: 'choice',
        choices: [
          ['', 'Fragmented MP4'],
          ['mp4', 'MP4 with its index at the front'],
        ],
      },
      { path: 'maxBitrate', label: 'Highest bit rate (Mbit/s)', kind: 'number', placeholder: '100' },
    ],
  },
  {
    title: 'Stills, movement and events',
    isRare: true,
    fields: [
      text('snapshot', 'Address of a still image', 'http://192.168.1.20/snapshot.jpg'),
      text('onvif', 'Address of ONVIF', 'http://192.168.1.20/onvif/device_service'),
      check('ptz', 'The camera may be moved'),
      {
        path: 'events',
        label: 'Events of the camera, such as motion',
        kind: 'choice',
        choices: [
          ['', 'If it has an address of ONVIF'],
          ['always', 'Always'],
          ['never', 'Never'],
        ],
      },
      check('activity', 'Look for what changes in the picture'),
    ],
  },
  {
    title: 'Memory of the camera',
    isRare: true,
    fields: [
      check('edge.onvif', 'Fill gaps from the memory of the camera (ONVIF Profile G)'),
      text('edge.recordingId', 'Recording in the camera'),
      text(
        'edge.replay',
        'Address of its footage',
        'rtsp://192.168.1.20/replay?start={start}&end={end}',
        'Instead of ONVIF.',
      ),
      text('edge.timeZone', 'Time zone of the camera', 'Europe/Berlin'),
      { path: 'edge.maxBitrate', label: 'Highest bit rate for it (Mbit/s)', kind: 'number' },
    ],
  },
  {
    title: 'Encryption',
    isRare: true,
    fields: [
      check('tls.verify', 'Refuse a certificate that nobody trusted has signed'),
      text('tls.fingerprint', 'Only this certificate (SHA-256)'),
      { path: 'tls.ca', label: 'Certificates of the authorities (PEM)', kind: 'lines' },
      check('allowPlaintextLogin', 'Allow the password in readable form'),
    ],
  },
];

export const FIELDS: readonly Field[] = GROUPS.flatMap(({ fields }) => fields);

/** What the fields hold, by their paths. */
export type Draft = Readonly<Record<string, string | boolean>>;

const ADDRESS = /^([a-z+]+:\/\/)(?:([^@/?#]*)@)?(.*)$/is;

export function draftOf(settings: Settings): Draft {
  const [, scheme = '', user = '', rest = ''] = ADDRESS.exec(wordOf(settings['source'])) ?? [];
  const draft: Record<string, string | boolean> = {};
  for (const { path, ...field } of FIELDS) {
    const value = at(settings, path);
    draft[path] = field.kind === 'check' ? (value ?? field.usual) === true : wordOf(value);
  }
  // An address that cannot be taken apart is shown as it is.
  if (scheme !== '') draft['source'] = `${scheme}${rest}`;
  return { ...draft, user: decoded(user), password: '' };
}

/** The settings with what was changed in the fields; all else stays as it was. */
export function settingsOf(before: Settings, draft: Draft): Settings {
  const first = draftOf(before);
  const settings = structuredClone(before) as Record<string, unknown>;
  for (const field of FIELDS) {
    const { path } = field;
    if (path === 'user' || path === 'password' || draft[path] === first[path]) continue;
    put(settings, path.split('.'), valueOf(field, draft[path]));
  }
  const isLogin = ['source', 'user', 'password'].some((path) => draft[path] !== first[path]);
  if (isLogin) settings['source'] = addressOf(draft, first, wordOf(before['source']));
  return settings;
}

function addressOf(draft: Draft, first: Draft, before: string): string {
  const [user, password] = [draft['user'] as string, draft['password'] as string];
  const [, scheme = '', typed, rest = ''] = ADDRESS.exec((draft['source'] as string).trim()) ?? [];
  // What cannot be taken apart, and an address in which somebody typed a login.
  if (scheme === '' || typed !== undefined) return draft['source'] as string;
  const shown = ADDRESS.exec(before)?.[2] ?? '';
  const name = user === first['user'] ? shown : encodeURIComponent(user);
  // An address with an empty user removes the login that is stored.
  if (name === '') return shown === '' ? `${scheme}${rest}` : `${scheme}@${rest}`;
  return `${scheme}${name}${password === '' ? '' : `:${encodeURIComponent(password)}`}@${rest}`;
}

function valueOf(field: Field, value: string | boolean | undefined): unknown {
  if (field.kind === 'check') return value === field.usual ? undefined : value;
  const word = wordOf(value).trim();
  if (word === '') return undefined;
  return field.kind === 'number' && Number.isFinite(Number(word)) ? Number(word) : word;
}

/** Sets or, for `undefined`, removes a value; groups that are empty then are removed, too. */
function put(settings: Record<string, unknown>, [key = '', ...more]: readonly string[], value: unknown): void {
  if (more.length === 0) settings[key] = value;
  else {
    const inner = { ...(settings[key] as Record<string, unknown> | undefined) };
    put(inner, more, value);
    settings[key] = Object.keys(inner).length === 0 ? undefined : inner;
  }
  if (settings[key] === undefined) delete settings[key];
}

const at = (settings: Settings, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as Settings | undefined)?.[key], settings);

const wordOf = (value: unknown): string =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    // A percent sign that begins no escape stands for itself.
    return word;
  }
}

/** The field at which an error is shown. */
export const fieldOf = (path: string, detail: string): string =>
  path === 'source' && detail.includes('add the password') ? 'password' : path;
