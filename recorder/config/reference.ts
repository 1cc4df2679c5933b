// Generates the reference of the configuration from its schema: a Markdown table with one row for each key.

import { z } from 'zod';
import { ConfigFile } from './schema.ts';

/** The parts of the output of `z.toJSONSchema` that are used here. */
interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly 'x-value-type'?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
}

interface Row {
  readonly key: string;
  readonly type: string;
  readonly fallback: string;
  readonly meaning: string;
}

/** One row for each key that holds a value, in the order of the schema. */
export function configurationRows(): Row[] {
  const schema = z.toJSONSchema(ConfigFile, { io: 'input', unrepresentable: 'any' }) as Schema;
  return rowsOf('', schema);
}

function rowsOf(prefix: string, schema: Schema): Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
    const key = prefix + name;
    if (value.properties) {
      const rows = rowsOf(`${key}.`, value);
      // A group without a default may be omitted as a whole.
      return value.default === undefined ? rows.map((row) => within(key, row)) : rows;
    }
    const row = rowOf(key, value, schema.required?.includes(name) ?? false);
    return value.items?.properties ? [row, ...rowsOf(`${key}[].`, value.items)] : [row];
  });
}

const within = (group: string, row: Row): Row =>
  row.fallback === 'required' ? { ...row, fallback: `required in \`${group}\`` } : row;

function rowOf(key: string, schema: Schema, required: boolean): Row {
  return {
    key,
    type: typeOf(schema),
    fallback: required ? 'required' : formatDefault(schema.default),
    meaning: schema.description ?? '',
  };
}

function typeOf(schema: Schema): string {
  if (schema['x-value-type']) return schema['x-value-type'];
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (schema.type === 'array') return 'list';
  return schema.type === 'string' ? 'text' : (schema.type ?? '');
}

function formatDefault(value: unknown): string {
  if (value === undefined) return '';
  if (value === '') return 'empty';
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

const INTRODUCTION = `# Configuration

<!-- Made by build/generate-config-docs.ts from recorder/config/schema.ts; a test fails when it is stale. -->

The recorder reads one YAML file (\`--config\`, by default \`/etc/recorder/config.yaml\`), and then the files
\`conf.d/*.yaml\` next to it, in the order of their names. The cameras of all files are added together; of every other setting, the
last value counts. A key without a value is ignored. Unknown keys and wrong values prevent the start, and so do errors of
the machine: an address in use, a directory that cannot be made or written, a certificate that cannot be read. All errors are
reported together, one per line, with file, line, column and key:

\`\`\`
/etc/recorder/config.yaml:3:1: recordPath: unknown key, did you mean record_path?
/etc/recorder/conf.d/10-yard.yaml:9:13: cameras[2].source: expected an address that begins with rtsp://, rtsps://, rtsp+http://, rtsp+https://, rtsp+ws:// or rtsp+wss://
\`\`\`

\`recorder --check-config\` reports the same errors without starting; it accepts addresses that a running recorder uses. Cameras can
also be added, changed and removed [by the API](control.md), which stores them in files of \`conf.d\`.

**Changes while the recorder runs.** When a file changes, and on SIGHUP, the recorder reads the files again:

- Cameras whose connection or name changed (such as \`source\`, \`transport\`, \`tls\`, \`name\`) are restarted; all others continue.
- \`record.format\` and \`segmentDuration\` apply to the next file. An open file that is already longer than the new
  duration ends at its next key frame. Retention limits, \`maxBitrate\`, tokens, webhooks and
  \`log.level\` apply at once, and \`cameraNetworks\` to the next connection.
- Certificates are read again when their files change.
- All other settings need a restart; the log names those of them that have changed.
- A configuration with errors changes nothing; a file without content, as an editor or a full disk leaves it, is one.
- A change that lacks all tokens, all cameras, or more than half of more than two, is refused like one with errors, and so is a
  table \`cameras\` without those rows: more often than not a file was cut or a directory is not mounted. SIGHUP (\`systemctl reload
  recorder\`) applies it, and the API removes the cameras that it is asked to remove. While the recorder works with older settings than those of the
  files, \`ready\` has the warning \`configuration-refused\`, and for an hour \`camera-removed\` for each camera that is gone.

**Environment variables** set the values that differ between pods. They take precedence over the files:

| variable | sets |
| --- | --- |
| \`KUBE_NVR_NODE_NAME\` | \`nodeName\` |
| \`KUBE_NVR_ADVERTISE\` | \`cluster.advertise\` |
| \`KUBE_NVR_PLAYBACK_ADVERTISE\` | \`playback.advertise\` |
| \`KUBE_NVR_HEALTH_LISTEN\` | \`health.listen\` |
| \`KUBE_NVR_PEERS_LISTEN\` | \`cluster.listen\` |
| \`KUBE_NVR_METRICS_TOKEN_FILE\` | a file that contains \`metrics.tokenSha256\`; if it is empty, \`metrics.requireToken\` is true without a token |
| \`KUBE_NVR_USERS_FILE\` | \`auth.usersFile\`, unless the files set it |
| \`KUBE_NVR_ISSUERS_FILE\` | \`auth.issuersFile\`, unless the files set it |
| \`KUBE_NVR_SESSION_KEY_FILE\` | a file with the key by which the nodes of a pool read each other's sessions, 64 hexadecimal digits; without it, a node reads its own only. Read again when it changes |
| \`KUBE_NVR_DATABASE_URL\` | \`database.url\` |
| \`KUBE_NVR_REDIS_URL\` | \`redis.url\` |

- A **duration** is \`250ms\`, \`30s\`, \`5m\`, \`1h30m\`, \`7d\` or \`2w\`.
- A **size** is \`500GiB\` or \`500Gi\` (powers of 1024), \`500GB\` or \`500G\` (powers of 1000), or a number of bytes. A
  **share** is \`5%\` of the file system.
- A **host:port** is \`0.0.0.0:9997\`, \`localhost:9997\`, \`[::1]:9997\`, or \`:9997\` for all IPv6 and IPv4 addresses.
  Port 0 chooses a free one.
- A **source** may contain a user and a password with any characters, unescaped: \`rtsp://admin:pa/ss#w@rd@10.0.0.9/live\`;
  only an \`@\` before a \`/\` or \`?\` in it has to be written \`%40\`.
  Passwords appear in no log, metric, answer or error.

A key with \`[]\` applies to each entry of a list.

## Settings

| key | type | default | meaning |
| --- | --- | --- | --- |
`;

/** The whole page; prettier gives it its final form. */
export function configurationReference(): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
  const rows = configurationRows().map(
    ({ key, type, fallback, meaning }) => `| \`${key}\` | ${cell(type)} | ${fallback} | ${cell(meaning)} |`,
  );
  return `${INTRODUCTION}${rows.join('\n')}\n`;
}
