// npm run bench [-- [PART...] [--quick] [--save]]: measures the recorder and its references and prints tables.
//
// Parts: cpu memory scale live viewers console console-idle events catalogue listing listing-postgres timeline playback retention export export-of-nodes api costs copies everything
// outage edge picture-time before before-requests; without a name, all. `--quick`: takes less than two minutes. `--save` keeps the output in test/bench/results/
// and the figures in docs/performance.md; it needs long windows.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Bench } from './bench.ts';
import { prepareMedia } from './media.ts';
import { measureApi } from './parts/api.ts';
import { measureBefore } from './parts/before.ts';
import { measureRequestsBefore } from './parts/before-requests.ts';
import { measureCatalogue } from './parts/catalogue.ts';
import { measureConsole, measureIdleConsole } from './parts/console.ts';
import { measureCopies } from './parts/copies.ts';
import { measureCosts } from './parts/costs.ts';
import { measureCpu } from './parts/cpu.ts';
import { measureEdge } from './parts/edge.ts';
import { measureEvents } from './parts/events.ts';
import { measureEverything } from './parts/everything.ts';
import { measureExport } from './parts/export.ts';
import { measureExportOfNodes } from './parts/export-of-nodes.ts';
import { measureListing } from './parts/listing.ts';
import { measureListingPostgres } from './parts/listing-postgres.ts';
import { measureLive } from './parts/live.ts';
import { measureMemory } from './parts/memory.ts';
import { measureOutage } from './parts/outage.ts';
import { measurePictureTime } from './parts/picture-time.ts';
import { measurePlayback } from './parts/playback.ts';
import { measureRetention } from './parts/retention.ts';
import { measureScale } from './parts/scale.ts';
import { measureTimeline } from './parts/timeline.ts';
import { measureViewers } from './parts/viewers.ts';
import { figureTable, machine, measuredInWords, shortTable, verdictOf, type Figure } from './report.ts';

const PARTS: Readonly<Record<string, (bench: Bench) => Promise<void>>> = {
  cpu: measureCpu,
  memory: measureMemory,
  scale: measureScale,
  live: measureLive,
  viewers: measureViewers,
  console: measureConsole,
  'console-idle': measureIdleConsole,
  events: measureEvents,
  catalogue: measureCatalogue,
  listing: measureListing,
  timeline: measureTimeline,
  playback: measurePlayback,
  retention: measureRetention,
  export: measureExport,
  'export-of-nodes': measureExportOfNodes,
  'listing-postgres': measureListingPostgres,
  api: measureApi,
  costs: measureCosts,
  copies: measureCopies,
  everything: measureEverything,
  outage: measureOutage,
  'picture-time': measurePictureTime,
  edge: measureEdge,
  before: measureBefore,
  'before-requests': measureRequestsBefore,
};

/** The least that a saved output contains: all parts that need no other servers. */
const SAVED = ['cpu', 'memory', 'live', 'viewers', 'listing', 'costs'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    before: { type: 'string' },
  },
});
const names = positionals.length === 0 ? Object.keys(PARTS) : positionals;
const unknown = names.find((name) => !PARTS[name]);
if (unknown !== undefined) {
  console.error(`no such part: ${unknown}; parts are ${Object.keys(PARTS).join(' ')}`);
  process.exit(2);
}

const text: string[] = [];
const figures: Figure[] = [];
const say = (line: string): void => {
  text.push(line);
  console.log(line);
};

/** Writes the figures that have a limit between the marks of the page. */
function saveToPage(): void {
  const path = join(import.meta.dirname, '..', '..', 'docs', 'performance.md');
  const page = readFileSync(path, 'utf8');
  const block = `<!-- bench -->\n\n${shortTable(figures)}\n\n${measuredInWords()}\n\n<!-- /bench -->`;
  writeFileSync(
    path,
    page.replace(/<!-- bench -->(.*<!-- \/bench -->)?/s, () => block),
  );
}

const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-bench-'));
try {
  const media = prepareMedia(join(import.meta.dirname, 'cache'));
  const bench: Bench = {
    media,
    directory,
    quick: values.quick,
    before: values.before,
    say,
    figure: (figure) => figures.push(figure),
  };
  say(`kube-nvr bench, ${new Date().toISOString().slice(0, 10)}${values.quick ? ', quick' : ''}`);
  say(machine());
  say(
    `camera   1080p25 H.264 and AAC, ${((media.bytesPerSecond * 8) / 1e6).toFixed(2)} Mbit/s, ` +
      `${media.packetsPerSecond.toFixed(0)} packets a second, RTSP over loopback TCP`,
  );
  for (const name of names) {
    const startMs = performance.now();
    say(`\n== ${name}`);
    const from = figures.length;
    await PARTS[name]?.(bench);
    say(figureTable(figures.slice(from)));
    say(`(${((performance.now() - startMs) / 1000).toFixed(0)} s)`);
  }
  if (names.length > 1) say(`\n== all figures\n${figureTable(figures)}`);
  if (values.save) {
    if (values.quick || !SAVED.every((name) => names.includes(name))) {
      console.error(`--save needs the long windows and the parts ${SAVED.join(' ')}: not saved`);
    } else {
      const results = join(import.meta.dirname, 'results');
      mkdirSync(results, { recursive: true });
      writeFileSync(join(results, 'latest.txt'), `${text.join('\n')}\n`);
      saveToPage();
    }
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}
process.exit(figures.some((figure) => verdictOf(figure) === 'MISSED') ? 1 : 0);
