// A thousand clients follow the events while twenty cameras record: each gets every event, and recording is not affected.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CAMERAS, cpuShare, recording, type Bench } from '../bench.ts';
import { memoryOf, sleep, start } from '../processes.ts';
import { VIEWER } from './live.ts';

const FOLLOWERS = 1_000;
/** A camera that never answers: it is stopped and started, which causes events. */
const AWAY = 'away';
const CHANGE_MS = 250;
const MEGABYTE = 1e6;

export async function measureEvents(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 10 : 60;
  const prepare = (directory: string): void => {
    mkdirSync(join(directory, 'conf.d'));
    // The discard port, on which nothing listens.
    const cameras = [{ id: AWAY, source: 'rtsp://127.0.0.1:9/' }];
    writeFileSync(join(directory, 'conf.d/away.yaml'), JSON.stringify({ cameras }));
  };
  const { result, verdict } = await recording(bench, { cameras: CAMERAS, prepare }, async ({ recorder }) => {
    await sleep(5_000);
    const alone = await cpuShare(recorder.pids, 10);
    const { resident } = memoryOf(recorder.pid);
    const log = join(bench.directory, 'followers.log');
    const crowd = start(process.execPath, [VIEWER, 'events', recorder.address, String(FOLLOWERS)], log);
    await crowd.line(/^connected$/);
    const share = cpuShare(recorder.pids, seconds);
    const endMs = performance.now() + seconds * 1000;
    for (let i = 0; performance.now() < endMs; i++) {
      const what = i % 2 === 0 ? 'stop' : 'start';
      await fetch(`http://${recorder.address}/cameras/${what}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: AWAY }),
      });
      await sleep(CHANGE_MS);
    }
    const followed = await share;
    await sleep(3_000);
    const grown = memoryOf(recorder.pid).resident - resident;
    crowd.write('stop');
    const [line] = await crowd.line(/^\{.*/);
    const told = JSON.parse(line) as { closed: number; events: number; lost: number; disordered: number };
    return { alone, followed, grown, told };
  });
  const { alone, followed, grown, told } = result;
  bench.figure({
    figure: `events lost or out of order, ${FOLLOWERS} followers`,
    unit: `of ${told.events * FOLLOWERS}`,
    measured: told.lost + told.disordered,
    must: 0,
    aim: 0,
    note: `${told.events} events in ${seconds} s; ${told.closed} followers cut off`,
  });
  bench.figure({
    figure: '  CPU of all followers',
    unit: '% of a core',
    measured: (followed - alone) * 100,
    note: `recorder ${(alone * 100).toFixed(1)} % before`,
  });
  bench.figure({ figure: '  memory of all followers', unit: 'MB', measured: grown / MEGABYTE });
  bench.figure({
    figure: '  pictures lost, torn or out of order',
    unit: `of ${verdict.sent}`,
    measured: verdict.lost + verdict.torn + verdict.disordered,
    must: 0,
    aim: 0,
  });
}
