// Programs that collect the audit: rsyslog over TLS, and the receiver of the OpenTelemetry collector. Each writes what it gets into a
// file, line by line.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newAuthority, newKey, newRequest, signRequest } from '../../base/x509.ts';
import { findProgram } from '../cluster/programs.ts';
import { Child } from './child.ts';
import { until } from './until.ts';

const VALID = { fromMs: Date.now() - 3_600_000, toMs: Date.now() + 86_400_000 };
const RSYSLOG = '/usr/sbin/rsyslogd';

/** Why tests that need both are left out; false when they are not. */
export const collectorsMissing = (): string | false =>
  existsSync(RSYSLOG) && findProgram('collector') !== undefined
    ? false
    : 'rsyslog or the collector is not installed: hack/setup collectors brings them';

/** A CA, and a server on this machine that it signed: paths of files in PEM. */
interface ServerFiles {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

export async function serverFiles(directory: string): Promise<ServerFiles> {
  const authority = await newAuthority({ commonName: 'CA', ...VALID });
  const key = newKey();
  const subject = { commonName: 'collector', names: ['127.0.0.1'], ...VALID };
  const certificate = await signRequest(await newRequest(key), authority, subject);
  mkdirSync(directory, { recursive: true });
  const write = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  return {
    ca: write('ca.pem', authority.certificate),
    certificate: write('server.pem', certificate),
    key: write('server.key', key),
  };
}

/** rsyslog with TLS at a port of the loopback address. A line of `file`: structured data, a space, and the message. */
export async function startRsyslog(
  directory: string,
  port: number,
  { ca, certificate, key }: ServerFiles,
  file: string,
): Promise<Child> {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, 'rsyslog.conf');
  writeFileSync(
    config,
    `global(workDirectory="${directory}" maxMessageSize="64k" defaultNetstreamDriver="ossl"
  defaultNetstreamDriverCAFile="${ca}" defaultNetstreamDriverCertFile="${certificate}" defaultNetstreamDriverKeyFile="${key}")
module(load="imtcp" streamDriver.name="ossl" streamDriver.mode="1" streamDriver.authMode="anon")
template(name="audit" type="string" string="%timestamp:::date-rfc3339% %hostname% %app-name% %msgid% %pri% %structured-data% %msg%\\n")
input(type="imtcp" address="127.0.0.1" port="${port}")
if $app-name == "kube-nvr-recorder" then action(type="omfile" file="${file}" template="audit")
`,
  );
  const child = new Child(RSYSLOG, ['-n', '-f', config, '-i', join(directory, 'pid')]);
  await until('rsyslog listens', () => listens(port));
  return child;
}

/** The receiver of the OpenTelemetry collector, with HTTPS. A line of `file`: a request as JSON of OTLP. */
export async function startCollector(port: number, { certificate, key }: ServerFiles, file: string): Promise<Child> {
  const child = new Child(findProgram('collector')!, [`127.0.0.1:${port}`, certificate, key, file]);
  await until('the collector listens', () => child.output.includes('ready'));
  return child;
}

/** Asked without a connection, which a server would have to answer. */
const listens = (port: number): boolean =>
  readFileSync('/proc/net/tcp', 'utf8').includes(
    `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} 00000000:0000 0A`,
  );
