// The command `recorder probe rtsp://…`: watches a camera for half a minute, and reports what it is, which faults it has,
// what will be recorded, and a capture for replaying it.

import { readFile, writeFile } from 'node:fs/promises';
import { silentLog } from '../../base/log.ts';
import type { TransportChoice } from '../contract/camera-source.ts';
import { SlabPool } from '../codec/slab.ts';
import { checkCameraUrl, ValueError } from '../config/values.ts';
import { lookForMemory } from '../edge/look.ts';
import { lookForEvents } from '../onvif/look-for-events.ts';
import { parsedArgs, UsageError, type CommandContext } from './command.ts';
import { formatCapture, MAX_CAPTURE_BYTES } from '../probe/capture.ts';
import { formatReport } from '../probe/report.ts';
import { probe } from '../probe/run.ts';
import { anywhere } from '../reach/reach.ts';
import { RtspError } from '../rtsp/error.ts';
import { parseRtspUrl } from '../rtsp/url.ts';

export const usage = `Usage: recorder probe URL [--seconds 30] [--transport auto|tcp|udp] [--onvif URL] [--capture FILE] [--json]

Connects to a camera as the recorder does, watches it, and reports what it is, which rows of docs/cameras.md apply to it, and
what will be recorded of it, whether it has a memory of its own (ONVIF Profile G), and which events it offers over ONVIF. URL is
rtsp:// or rtsps://, with user and password in it; - reads it from standard input, which keeps the password out of the list of processes.

  --seconds N        how long to watch, 5 to 600 (default 30)
  --transport KIND   auto, tcp or udp (default auto)
  --onvif URL        its ONVIF device service (default: port 80 of the host)
  --capture FILE     write messages and packets to FILE (gzip), without address, login, pictures and sound:
                     hack/camera --replay FILE replays the camera
  --json             print the report as JSON

Exit code: 0 when video or sound is recorded from it, 1 when nothing is.
`;

const TRANSPORTS: readonly string[] = ['auto', 'tcp', 'udp', 'multicast'] satisfies TransportChoice[];

export async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const { clock, version, print } = context;
  const signal = context.interrupted();
  const { values, positionals } = parsedArgs(args, {
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '30' },
      transport: { type: 'string', default: 'auto' },
      onvif: { type: 'string' },
      capture: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  const [named] = positionals;
  if (named === undefined || positionals.length > 1) throw new UsageError('expected one URL');
  const source = named === '-' ? (await readFile('/dev/stdin', 'utf8')).trim() : named;
  checkSource(source);
  const seconds = Number(values.seconds);
  if (!(seconds >= 5 && seconds <= 600)) throw new UsageError('--seconds: expected a number from 5 to 600');
  if (!TRANSPORTS.includes(values.transport)) {
    throw new UsageError(`--transport: expected one of ${TRANSPORTS.join(', ')}`);
  }
  const options = {
    seconds,
    captureBytes: values.capture === undefined ? 0 : MAX_CAPTURE_BYTES,
    version,
  };
  const reach = anywhere();
  const address = { source, onvif: onvifOf(values.onvif), tls: { verify: false }, allowPlaintextLogin: false };
  const lookOverOnvif = async () => {
    const memory = await lookForMemory(address, { clock, reach, pool: new SlabPool() }, signal);
    // Afterwards: a password that was refused is not sent again.
    return { memory, events: await lookForEvents(address, { clock, reach }, signal) };
  };
  const [{ report, capture }, { memory, events }] = await Promise.all([
    probe(
      { source, transport: values.transport as TransportChoice },
      options,
      { clock, log: silentLog, reach },
      signal,
    ),
    lookOverOnvif(),
  ]);
  if (capture && values.capture !== undefined) await writeFile(values.capture, formatCapture(capture), { mode: 0o600 });
  const text = `${formatReport(report)}\nits own memory: ${memory.answer}, ${memory.message}\nevents: ${events.answer}, ${events.message}\n`;
  print(values.json ? `${JSON.stringify({ ...report, memory, events }, null, 2)}\n` : text);
  return report.streams.some((stream) => stream.frames > 0) ? 0 : 1;
}

function onvifOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    checkCameraUrl(text);
    return text;
  } catch (err) {
    if (!(err instanceof ValueError)) throw err;
    throw new UsageError(`--onvif: ${err.message}`, { cause: err });
  }
}

function checkSource(source: string): void {
  try {
    parseRtspUrl(source);
  } catch (err) {
    if (!(err instanceof RtspError)) throw err;
    throw new UsageError(`URL: ${err.message}`, { cause: err });
  }
}
