// Prints the OpenAPI document of a recorder with all features, or writes it to the file with which a release compares it:
//
//   node build/generate-openapi.ts [FILE]

import { readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { VirtualClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { buildApi } from '../recorder/api/app.ts';
import { standaloneChecks, type ApiDeps } from '../recorder/api/deps.ts';
import { noAudit } from '../recorder/audit/entry.ts';
import { openFootage } from '../recorder/footage/open.ts';
import { Authenticator } from '../recorder/http/auth.ts';
import { joined, type OpenApiDocument } from '../recorder/http/openapi.ts';
import { buildPlayback } from '../recorder/playback/app.ts';

/** Dependencies that are used only by requests, of which there are none. */
const unasked = {} as never;

/** The document of API and playback, with every route. */
export async function wholeDocument(): Promise<OpenApiDocument> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  const clock = new VirtualClock();
  const auth = new Authenticator({ mode: 'none', tokens: [] }, { clock });
  const common = { version, auth, clock, log: silentLog };
  const deps: ApiDeps = {
    ...common,
    recordPath: '',
    archive: unasked,
    nodeName: '',
    address: '',
    issuers: unasked,
    cameras: unasked,
    segments: unasked,
    gaps: unasked,
    checks: standaloneChecks,
    machine: unasked,
    protections: unasked,
    site: unasked,
    objectives: unasked,
    origins: [],
    trustedProxies: [],
    times: unasked,
    warnings: unasked,
    playback: { port: unasked, advertised: undefined, document: unasked, routes: async () => {} },
    keepAwake: unasked,
    jobs: unasked,
    ptz: unasked,
    stills: unasked,
    discoverer: unasked,
    doctor: unasked,
    cameraSwitch: unasked,
    tryLogins: unasked,
    cameraEditor: unasked,
    logLevels: unasked,
    audit: { sink: noAudit, visits: unasked, reader: unasked },
    cluster: unasked,
    store: unasked,
    events: unasked,
    happenings: unasked,
    activity: unasked,
    alarms: unasked,
    testMail: unasked,
  };
  const [api, playback] = [
    await buildApi(deps),
    await buildPlayback({
      ...common,
      footage: openFootage({ recordPath: '', archive: unasked, clock, log: silentLog }),
    }),
  ];
  try {
    await Promise.all([api.ready(), playback.ready()]);
    const [own, other] = [api, playback].map((app) => app.swagger() as OpenApiDocument);
    return joined(own as OpenApiDocument, other as OpenApiDocument, 'http://localhost:9996');
  } finally {
    await Promise.all([api.close(), playback.close()]);
  }
}

if (import.meta.main) {
  const text = await format(JSON.stringify(await wholeDocument()), { parser: 'json', printWidth: 120 });
  const file = process.argv[2];
  if (file === undefined) process.stdout.write(text);
  else writeFileSync(file, text);
}
