// The audit at collectors: rsyslog over TLS, and the receiver of the OpenTelemetry collector, which end and come back.

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditLine } from '../../recorder/audit/files.ts';
import { collectorsMissing, serverFiles, startCollector, startRsyslog } from '../support/collectors.ts';
import { freePorts, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

interface Received {
  readonly id: string;
  readonly n: number;
  readonly timeMs: number;
  readonly text: string;
}

const linesOf = (file: string): string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];

/** As the template of `startRsyslog` writes them. */
function fromSyslog(file: string): Received[] {
  return linesOf(file).map((line) => {
    const form =
      /^(?<time>\S+) rack-1 kube-nvr-recorder (?<what>\S+) \d+ \[kube-nvr@32473 n="(?<n>\d+)" id="(?<id>\w{64})" node="rack-1" site="North \\"1\\"\\\]"[^\]]*\]\[origin software="kube-nvr" swVersion="[^"]+"\] ?(?<text>\{.*\})$/;
    const { time, what, n, id, text } = form.exec(line)?.groups ?? assert.fail(line);
    assert.equal((JSON.parse(text!) as AuditLine).what, what);
    return { id: id!, n: Number(n), timeMs: Date.parse(time!), text: text! };
  });
}

interface OtlpRequest {
  readonly resourceLogs: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeLogs: readonly { readonly logRecords: readonly OtlpRecord[] }[];
  }[];
}
interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}
interface OtlpRecord {
  readonly timeUnixNano: string;
  readonly body: { readonly stringValue: string };
  readonly attributes: readonly Attribute[];
}

function fromOtlp(file: string): Received[] {
  const requests = linesOf(file).map((line) => JSON.parse(line) as OtlpRequest);
  return requests
    .flatMap(({ resourceLogs }) => resourceLogs)
    .flatMap(({ resource, scopeLogs }) => {
      const of = Object.fromEntries(resource.attributes.map(({ key, value }) => [key, value.stringValue]));
      assert.deepEqual([of['service.instance.id'], of['kube_nvr.site']], ['rack-1', 'North "1"]']);
      return scopeLogs.flatMap(({ logRecords }) => logRecords);
    })
    .map(({ timeUnixNano, body, attributes }) => {
      const of = Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));
      const timeMs = Number(BigInt(timeUnixNano) / 1_000_000n);
      return { id: of['log.record.uid']!, n: Number(of['kube_nvr.audit.n']), timeMs, text: body.stringValue };
    });
}

/** Without the lines that a collector got twice, whose ids are equal. */
function withoutDuplicates(received: readonly Received[]): readonly Received[] {
  return [...new Map(received.map((one) => [one.id, one])).values()];
}

suite('the audit at collectors', { skip: collectorsMissing() }, () => {
  test('no line is lost over restarts of the collectors and of the recorder, and their order and times are those of the files', async (t) => {
    const directory = workspace(t);
    const files = await serverFiles(join(directory, 'tls'));
    const [syslogPort, otlpPort] = await freePorts(2);
    const atSyslog = join(directory, 'syslog.txt');
    const atOtlp = join(directory, 'otlp.txt');
    const rsyslog = () => startRsyslog(join(directory, 'rsyslog'), syslogPort!, files, atSyslog);
    const collector = () => startCollector(otlpPort!, files, atOtlp);
    const config = {
      nodeName: 'rack-1',
      console: { site: 'North "1"]' },
      audit: {
        syslog: { address: `127.0.0.1:${syslogPort}`, ca: files.ca },
        otlp: { url: `https://127.0.0.1:${otlpPort}/v1/logs`, ca: files.ca },
      },
    };
    const start = () => RecorderProcess.start({ directory, config });
    /** Each makes a line. */
    const act = async (recorder: RecorderProcess, count: number): Promise<void> => {
      for (let i = 0; i < count; i++) await recorder.get('/api/audit?limit=1&who=%C3%BC%5D');
    };
    const got = (n: number, received: () => readonly Received[]) => () => received().some((one) => one.n >= n);
    const lastOf = async (recorder: RecorderProcess): Promise<number> => {
      const { end } = (await recorder.get('/api/audit?limit=1')) as { end: { n: number } };
      return end.n;
    };

    // Nobody answers yet: the recorder does all the same.
    const first = await start();
    await act(first, 20);
    let log = await rsyslog();
    let otel = await collector();
    const before = await lastOf(first);
    await until(
      'syslog has the first lines',
      got(before, () => fromSyslog(atSyslog)),
    );
    await until(
      'the collector has the first lines',
      got(before, () => fromOtlp(atOtlp)),
    );

    // One ends in an orderly way, the other one does not.
    await log.stop();
    otel.signal('SIGKILL');
    await otel.exit();
    await act(first, 20);
    await first.stop();
    const second = await start();
    await act(second, 20);
    log = await rsyslog();
    otel = await collector();
    const last = await lastOf(second);
    await until(
      'syslog has all lines',
      got(last, () => fromSyslog(atSyslog)),
    );
    await until(
      'the collector has all lines',
      got(last, () => fromOtlp(atOtlp)),
    );
    await second.stop();
    await Promise.all([log.stop(), otel.stop()]);

    const written = linesOf(join(directory, 'work/audit/audit.log')).slice(0, last);
    assert.ok(written.length >= 60);
    const expected = written.map((text) => {
      const { n, time } = JSON.parse(text) as AuditLine;
      return { n, timeMs: Date.parse(time), line: JSON.parse(text) as unknown };
    });
    for (const received of [fromSyslog(atSyslog), fromOtlp(atOtlp)]) {
      const lines = withoutDuplicates(received).slice(0, last);
      assert.deepEqual(
        lines.map(({ n, timeMs, text }) => ({ n, timeMs, line: JSON.parse(text) as unknown })),
        expected,
      );
    }
  });
});
