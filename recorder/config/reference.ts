// The configuration schema in, its reference for people out: a Markdown table with a row a key.

import { z } from 'zod';
import { ConfigFile } from './schema.ts';

/** What `z.toJSONSchema` makes of our schema, as far as we look at it. */
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
      // A group without default may be left out as a whole.
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

The recorder reads one YAML file (\`--config\`, by default \`/etc/recorder/config.yaml\`), then the files
\`conf.d/*.yaml\` beside it in the order of their names. Cameras of all files add up; of every other setting the last
one counts. A key without a value counts as not written. Unknown keys and wrong values stop the start, and so does what this
machine refuses: an address in use, a directory that cannot be made or written, a certificate that cannot be read. All of it
is told at once, a line each, with file, line, column and key:

\`\`\`
/etc/recorder/config.yaml:3:1: recordPath: unknown key, did you mean record_path?
/etc/recorder/conf.d/10-yard.yaml:9:13: cameras[2].source: expected an address that begins with rtsp://, rtsps://, rtsp+http://, rtsp+https://, rtsp+ws:// or rtsp+wss://
\`\`\`

Cameras can be added, changed and removed [by the API](control.md), too, which keeps them in files of \`conf.d\`.
\`recorder --check-config\` says the same without starting; addresses that a recorder uses which runs already are no
mistake then. When a file changes, and on SIGHUP, cameras are read again:
those whose connection changed (\`source\`, \`transport\`, \`tls\`, \`name\`) are restarted, all others go on undisturbed.
\`record\` and what cameras inherit from \`archive.segmentDuration\` count from the next file on, for a file that is
longer than that already at its next key frame, without a new connection; \`retention\` counts at once. Tokens are
replaced, and certificates follow their files.
Other settings need a restart; the log names those that wait for one. A configuration that is refused while the recorder runs changes nothing.

Pods have their own values in the environment, which are used instead of those of the files: \`KUBE_NVR_NODE_NAME\` for
\`nodeName\`, \`KUBE_NVR_ADVERTISE\` for \`cluster.advertise\`, \`KUBE_NVR_PLAYBACK_ADVERTISE\` for \`playback.advertise\`, \`KUBE_NVR_HEALTH_LISTEN\` for
\`health.listen\`, \`KUBE_NVR_PEERS_LISTEN\` for \`cluster.listen\`,
\`KUBE_NVR_METRICS_TOKEN_FILE\` for a file with \`metrics.tokenSha256\` (without content: \`metrics.requireToken\` alone), and, from Secrets, \`KUBE_NVR_DATABASE_URL\` for \`database.url\` and \`KUBE_NVR_REDIS_URL\` for \`redis.url\`.

- A **duration** is \`250ms\`, \`30s\`, \`5m\`, \`1h30m\`, \`7d\` or \`2w\`.
- A **size** is \`500GiB\` or \`500Gi\` (powers of 1024), \`500GB\` or \`500G\` (powers of 1000), or a number of bytes. A
  **share** is \`5%\` of the file system.
- A **host:port** is \`0.0.0.0:9997\`, \`localhost:9997\`, \`[::1]:9997\`, or \`:9997\` for every address of IPv6 and IPv4.
  Port 0 takes any free one.
- A **source** may hold a user and a password with any characters, as they are: \`rtsp://admin:pa/ss#w@rd@10.0.0.9/live\`;
  only an \`@\` before a \`/\` or \`?\` in it has to be written \`%40\`.
  Passwords appear in no log, metric, answer or error.

A key with \`[]\` stands for each entry of a list.

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
