// A process with jobs that kills itself with SIGKILL at a step of the first job: `killed-jobs.ts DIRECTORY STEP`. It prints the id
// of the job.

import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { Jobs } from '../../recorder/jobs/jobs.ts';
import { openQueue } from '../../recorder/jobs/open-queue.ts';
import { WALL_START_MS } from './joined-file.ts';

/** Steps in their order. */
export const STEPS = ['accepted', 'handed out', 'planned', 'half written', 'written', 'recorded'] as const;
type Step = (typeof STEPS)[number];

/** What processes with the same jobs have in common. */
export async function jobsIn(directory: string, at: (step: Step) => void = () => {}): Promise<Jobs> {
  const root = join(directory, 'recordings');
  const archive = new Archive({ root, clock: systemClock, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  const own = {
    directory: join(directory, 'redis'),
    url: undefined,
    nodeName: 'a',
    clock: systemClock,
    log: silentLog,
  };
  return new Jobs({
    directory: join(directory, 'results'),
    keyDirectory: join(directory, 'signing'),
    nodeName: 'a',
    recordPath: root,
    archive,
    ffmpegPath: 'ffmpeg',
    version: '1.2.3',
    clock: systemClock,
    log: silentLog,
    async spareBytes() {
      at('planned');
      return Infinity;
    },
    mayHaveJobs: async () => true,
    async openQueue(work, ended) {
      const queue = await openQueue(
        own,
        async (id, request, report, signal) => {
          at('handed out');
          const progress = (share: number): void => {
            at('half written');
            report.progress(share);
          };
          const outcome = await work(id, request, { ...report, progress }, signal);
          at('written');
          return outcome;
        },
        (id) => {
          at('recorded');
          ended(id);
        },
      );
      const add = queue.add.bind(queue);
      queue.add = async (id, request) => {
        process.stdout.write(`${id}\n`);
        await add(id, request);
        at('accepted');
      };
      return queue;
    },
  });
}

if (process.argv[1] === import.meta.filename) {
  const [directory = '', wanted] = process.argv.slice(2);
  const jobs = await jobsIn(directory, (step) => step === wanted && process.kill(process.pid, 'SIGKILL'));
  await jobs.start();
  await jobs.submit({ kind: 'export', cameraId: 'gate', fromMs: WALL_START_MS, toMs: WALL_START_MS + 4_000 });
  // The queue keeps the process until the step comes.
  setInterval(() => {}, 1_000);
}
