import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cameraStatus } from '../api/test-support.ts';
import type { CameraStatus } from '../contract/camera-status.ts';
import type { Examined } from './examination.ts';
import { findingsOf } from './findings.ts';

const VIDEO = {
  media: { kind: 'video', encodingName: 'MJPEG', formatParameters: new Map() },
  packets: { reordered: 1, duplicates: 2, lost: 300, jumps: 0, backwards: 0, extended: 0, sources: new Map() },
  recorded: { reordered: 0 },
};

/** Of a camera that loses packets over UDP. */
function ofUdp(changes: Partial<CameraStatus['counters']>): string | undefined {
  const examined = {
    seconds: 5,
    dialogue: { sessions: 1, sessionTimeout: '60', answers: new Map(), challenges: [], redirects: 0, requests: 0 },
    offered: [],
    streams: [VIDEO],
    ends: [],
    parameterChanges: 0,
  };
  const status = cameraStatus({ transport: 'udp', receiveBufferBytes: 212_992 });
  const found = findingsOf(examined as unknown as Examined, {
    ...status,
    counters: { ...status.counters, ...changes },
  });
  return found.find(({ row }) => row === 50)?.seen;
}

test('packets that are lost over UDP are told, and how many of them this machine has dropped', () => {
  assert.equal(ofUdp({ packetsDropped: 0 }), '1 packets late, 2 twice, 300 lost');
  assert.equal(
    ofUdp({ packetsDropped: 280 }),
    '1 packets late, 2 twice, 300 lost; the kernel of this machine dropped 280, because it keeps only 208 KiB until they are read (net.core.rmem_max)',
  );
});
