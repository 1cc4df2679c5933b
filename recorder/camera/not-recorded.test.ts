import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSdp } from '../rtsp/sdp.ts';
import { notRecorded } from './not-recorded.ts';

const SDP = `v=0
m=video 0 RTP/AVP 96
a=rtpmap:96 H264/90000
m=audio 0 RTP/AVP 8
m=video 0 RTP/AVP 97
a=rtpmap:97 MP4V-ES/90000
m=video 0 RTP/AVP 98
a=rtpmap:98 VP9/90000
m=video 0 RTP/AVP 33
m=video 0 RTP/AVP 26
m=video 0 RTP/SAVP 99
a=rtpmap:99 H264/90000
m=audio 0 RTP/AVP 0
a=sendonly
m=application 0 RTP/AVP 107
a=rtpmap:107 vnd.onvif.metadata/90000
m=video 0 RTP/AVP 100
`;

test('not recorded: every other stream is listed with its codec and why', () => {
  const listed = notRecorded(parseSdp(SDP), [0, 1]).map(({ kind, codec, reason }) => [kind, codec, reason.code]);
  assert.deepEqual(listed, [
    ['video', 'MP4V-ES', 'codec-unsupported'],
    ['video', 'VP9', 'codec-unsupported'],
    ['video', 'MP2T', 'codec-unsupported'],
    ['video', 'JPEG', 'second-stream'],
    ['video', 'H264', 'encrypted'],
    ['audio', 'PCMU', 'backchannel'],
    ['application', 'VND.ONVIF.METADATA', 'no-media'],
    ['video', undefined, 'codec-unsupported'],
  ]);
});

test('not recorded: names of a camera are bounded', () => {
  const name = 'X'.repeat(5_000);
  const [listed] = notRecorded(parseSdp(`m=video 0 RTP/AVP 96\r\na=rtpmap:96 ${name}/90000\r\n`), []);
  assert.ok(JSON.stringify(listed).length < 400, JSON.stringify(listed).slice(0, 200));
});
