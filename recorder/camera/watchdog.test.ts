import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CameraError } from './error.ts';
import type { CameraErrorCode } from './error.ts';
import { Patience } from './patience.ts';
import { Watchdog } from './watchdog.ts';

/** A session whose packets and pictures the test makes, checked every half second. */
class Session {
  readonly start: Patience;
  readonly pictures: {
    awaited: 'video' | 'sound';
    lastPictureMs: number | undefined;
    byeMs: number | undefined;
    isQuiet: (silentMs: number) => boolean;
    explainSilence: () => CameraError;
  };
  readonly #watchdog: Watchdog;
  nowMs = 5_000;

  constructor(
    why: CameraErrorCode = 'not-decodable',
    start = new Patience({ firstMs: 45_000, leastMs: 10_000, mostMs: 120_000 }),
  ) {
    this.start = start;
    this.pictures = {
      awaited: 'video',
      lastPictureMs: undefined,
      byeMs: undefined,
      isQuiet: () => false,
      explainSilence: () => new CameraError(why, 'x'),
    };
    this.#watchdog = new Watchdog({ nowMs: this.nowMs, pictures: this.pictures, start });
  }

  /** Advances time; returns the end of the session as `code after seconds`, or undefined. */
  pass(ms: number, what: { packets: boolean; pictures: boolean }): string | undefined {
    const sinceMs = this.nowMs;
    while (this.nowMs < sinceMs + ms) {
      this.nowMs += 500;
      if (what.pictures) this.pictures.lastPictureMs = this.nowMs;
      try {
        this.#watchdog.check(this.nowMs, what.packets);
      } catch (error) {
        assert.ok(error instanceof CameraError);
        return `${error.code} after ${(this.nowMs - sinceMs) / 1000}`;
      }
    }
    return undefined;
  }
}

const NOTHING = { packets: false, pictures: false };
const PACKETS = { packets: true, pictures: false };
const VIDEO = { packets: true, pictures: true };

test('watchdog: packets without pictures end the session within 15 s, before the first one and after it', () => {
  assert.equal(new Session().pass(60_000, PACKETS), 'not-decodable after 12.5');
  const session = new Session();
  assert.equal(session.pass(3_600_000, VIDEO), undefined);
  assert.equal(session.pass(60_000, PACKETS), 'not-decodable after 12');
});

test('watchdog: whole pictures without a key frame are waited for two minutes, before the first one', () => {
  assert.equal(new Session('no-key-frame').pass(300_000, PACKETS), 'no-key-frame after 130.5');
});

test('watchdog: a key frame that comes no more is waited for as long as a new connection would take to bring one', () => {
  const quick = new Session('no-key-frame');
  quick.pass(10_000, VIDEO);
  assert.equal(quick.pass(300_000, PACKETS), 'no-key-frame after 13');
  const slow = new Session('no-key-frame');
  slow.pass(40_000, PACKETS);
  slow.pass(10_000, VIDEO);
  assert.equal(slow.pass(300_000, PACKETS), 'no-key-frame after 93');
});

test('watchdog: a picture now and then keeps the session', () => {
  const session = new Session();
  for (let i = 0; i < 20; i++) {
    assert.equal(session.pass(500, VIDEO), undefined);
    assert.equal(session.pass(9_000, NOTHING), undefined);
  }
});

test('watchdog: no packet for 10 s ends the session', () => {
  const session = new Session();
  session.pass(20_000, VIDEO);
  assert.equal(session.pass(60_000, NOTHING), 'stream-silent after 10');
});

test('watchdog: a camera that is quiet keeps the session, and then has 12 s for the packets of its next picture', () => {
  const session = new Session();
  session.pictures.isQuiet = (silentMs) => silentMs < 300_000;
  for (let i = 0; i < 3; i++) {
    assert.equal(session.pass(500, VIDEO), undefined);
    assert.equal(session.pass(250_000, NOTHING), undefined);
    assert.equal(session.pass(11_000, PACKETS), undefined);
  }
  assert.equal(session.pass(60_000, PACKETS), 'not-decodable after 1.5');
  session.pass(500, VIDEO);
  assert.equal(session.pass(600_000, NOTHING), 'stream-silent after 300');
});

test('watchdog: the first packet has 45 s, twice as long after each failure, and as long as it needs once it came', () => {
  const { start } = new Session();
  assert.equal(new Session('not-decodable', start).pass(300_000, NOTHING), 'stream-silent after 45');
  assert.equal(new Session('not-decodable', start).pass(300_000, NOTHING), 'stream-silent after 90');
  assert.equal(new Session('not-decodable', start).pass(300_000, NOTHING), 'stream-silent after 120');
  const late = new Session('not-decodable', start);
  assert.equal(late.pass(110_000, NOTHING), undefined);
  assert.equal(late.pass(10_000, VIDEO), undefined);
  for (const seconds of [30, 10, 10]) {
    const session = new Session('not-decodable', start);
    assert.equal(session.pass(1_000, VIDEO), undefined);
    assert.ok(start.limitMs >= seconds * 1000);
  }
  assert.equal(start.limitMs, 10_000);
});

test('watchdog: a goodbye and half a second of silence end the session; one that packets follow does not', () => {
  const session = new Session();
  session.pass(20_000, VIDEO);
  session.pictures.byeMs = session.nowMs;
  assert.equal(session.pass(5_000, NOTHING), 'closed-by-camera after 0.5');
});
