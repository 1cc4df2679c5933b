#!/usr/bin/env node
// The recorder's command, in words that every Node understands: one that is too old for main.ts is told so.

// The first with `shouldUpgradeCallback` of its HTTP servers.
const NEEDED = '24.9';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 9)) {
  process.stderr.write(
    `recorder: needs Node ${NEEDED} or newer, and this is ${process.version} (${process.execPath})\n`,
  );
  process.exit(1);
}
// By its address: what checks this file alone does not take the whole program for JavaScript.
await import(new URL('main.ts', import.meta.url).href);
