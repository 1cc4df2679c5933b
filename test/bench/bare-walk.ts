// What reading the names of an archive costs in Node alone: lists every directory, and prints how many names it found.
//
//   node bare-walk.ts DIRECTORY

import { readdirSync } from 'node:fs';

function namesBelow(directory: string): number {
  let names = 0;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    names += entry.isDirectory() ? namesBelow(`${directory}/${entry.name}`) : 1;
  }
  return names;
}

process.stdout.write(`walked ${namesBelow(process.argv[2] as string)}\n`);
