// What the cameras in the pictures of the documentation see: a gate at dusk, a yard by day and a corridor, drawn as SVG. One
// thing moves in each. Chromium draws them, and ffmpeg makes ten seconds of H.264 of each.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import type { VideoFrame, VideoMedia } from '../../test/camera/media.ts';
import { nalType, splitAnnexB } from '../../test/support/packetize.ts';

interface Scene {
  readonly id: string;
  readonly name: string;
  readonly background: string;
  readonly mover: { readonly width: number; readonly height: number; readonly svg: string };
  /** Position of the mover, as expressions of ffmpeg's filter `overlay`: `t` is the time in seconds. */
  readonly x: string;
  readonly y: string;
}

const [WIDTH, HEIGHT] = [640, 360];
const FRAMES_PER_SECOND = 15;
const SECONDS = 10;
const TICKS = 90_000 / FRAMES_PER_SECOND;
const ACCESS_UNIT_DELIMITER = 9;

const bars = (count: number, of: (index: number) => string): string =>
  Array.from({ length: count }, (_, i) => of(i)).join('');

const PERSON = `<circle cx="17" cy="11" r="9" fill="#c9a58a"/><rect x="5" y="21" width="24" height="40" rx="9" fill="#d9a21b"/>
  <rect x="8" y="58" width="8" height="34" rx="4" fill="#2b3443"/><rect x="18" y="58" width="8" height="34" rx="4" fill="#242c39"/>`;

export const SCENES: readonly Scene[] = [
  {
    id: 'gate',
    name: 'Front gate',
    background: `<defs><linearGradient id="s" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#27375a"/>
      <stop offset="1" stop-color="#c98d62"/></linearGradient><radialGradient id="l"><stop offset="0" stop-color="#ffe9b0"/>
      <stop offset="1" stop-color="#ffe9b0" stop-opacity="0"/></radialGradient></defs>
      <rect width="640" height="210" fill="url(#s)"/><path d="M0 165 L90 140 L190 168 L330 128 L470 165 L560 142 L640 160 V260 H0Z"
      fill="#2a3240"/><rect x="395" y="84" width="190" height="135" fill="#3d4452"/><path d="M380 88 L490 38 L600 88Z" fill="#59343a"/>
      ${bars(3, (i) => `<rect x="${417 + i * 56}" y="112" width="32" height="38" fill="#ffd98a"/>`)}
      <rect y="210" width="640" height="150" fill="#3b4a39"/><path d="M0 282 L640 258 V345 L0 360Z" fill="#3a3c42"/>
      <path d="M0 321 L640 302" stroke="#d8d3c0" stroke-width="4" stroke-dasharray="34 26"/>
      ${bars(13, (i) => `<rect x="${28 + i * 16}" y="182" width="5" height="72" fill="#15181d"/>`)}
      <rect x="14" y="168" width="16" height="92" fill="#6d6459"/><rect x="232" y="168" width="16" height="92" fill="#6d6459"/>
      <rect x="20" y="196" width="220" height="5" fill="#15181d"/><rect x="20" y="238" width="220" height="5" fill="#15181d"/>
      <rect x="300" y="118" width="5" height="140" fill="#20242b"/><circle cx="302" cy="118" r="62" fill="url(#l)"/>`,
    mover: {
      width: 132,
      height: 52,
      svg: `<path d="M4 34 Q6 22 28 20 L46 4 H92 L110 20 Q128 22 128 36 V42 H4Z" fill="#8f2f33"/>
        <path d="M50 8 H68 V20 H38Z M72 8 H89 L101 20 H72Z" fill="#b9cbd8"/><circle cx="32" cy="42" r="10" fill="#15171b"/>
        <circle cx="102" cy="42" r="10" fill="#15171b"/><rect x="122" y="25" width="8" height="6" fill="#fff3c4"/>`,
    },
    x: "'mod(t*76,760)-132'",
    y: '262',
  },
  {
    id: 'yard',
    name: 'Yard',
    background: `<defs><linearGradient id="s" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#9fc0de"/>
      <stop offset="1" stop-color="#e3ebef"/></linearGradient></defs><rect width="640" height="150" fill="url(#s)"/>
      <rect y="140" width="640" height="220" fill="#8d8f8c"/><path d="M0 240 L640 196 V360 H0Z" fill="#a2a39f"/>
      <rect x="250" y="52" width="390" height="146" fill="#b8bdc2"/><rect x="250" y="52" width="390" height="16" fill="#70777e"/>
      ${bars(
        3,
        (i) => `<rect x="${284 + i * 118}" y="104" width="84" height="94" fill="#5d6873"/>
        ${bars(6, (j) => `<rect x="${284 + i * 118}" y="${112 + j * 15}" width="84" height="2" fill="#4a545e"/>`)}`,
      )}
      ${['#9c4a3c', '#35688c', '#4d7a52']
        .map(
          (colour, i) => `<rect x="18" y="${178 - i * 52}" width="172" height="50" fill="${colour}"/>
        ${bars(10, (j) => `<rect x="${28 + j * 16}" y="${182 - i * 52}" width="3" height="42" fill="#00000030"/>`)}`,
        )
        .join('')}
      <path d="M250 360 L330 212 M430 360 L450 206 M610 360 L560 202" stroke="#e9d96f" stroke-width="5"/>`,
    mover: { width: 34, height: 94, svg: PERSON },
    x: "'230+150*abs(mod(t,10)-5)/2.4'",
    y: "'210+2*sin(t*9)'",
  },
  {
    id: 'hall',
    name: 'Hall',
    background: `<rect width="640" height="360" fill="#d9d6cf"/><path d="M0 360 L250 190 H390 L640 360Z" fill="#7d8b93"/>
      <path d="M0 0 L250 110 H390 L640 0Z" fill="#efeeea"/><path d="M0 0 L250 110 V190 L0 360Z" fill="#c6c1b6"/>
      <path d="M640 0 L390 110 V190 L640 360Z" fill="#bdb8ad"/><rect x="250" y="110" width="140" height="80" fill="#a9b3b9"/>
      <rect x="298" y="124" width="44" height="66" fill="#5e7080"/>
      <path d="M60 118 L128 130 V268 L60 312Z M168 137 L206 143 V216 L168 241Z" fill="#6f5a48"/>
      <path d="M580 118 L512 130 V268 L580 312Z M472 137 L434 143 V216 L472 241Z" fill="#6f5a48"/>
      ${bars(
        4,
        (
          i,
        ) => `<path d="M${300 - i * 26} ${96 - i * 24} H${340 + i * 26} L${344 + i * 30} ${88 - i * 26} H${296 - i * 30}Z"
        fill="#ffffff"/>`,
      )}<path d="M320 190 V360" stroke="#ffffff30" stroke-width="60"/>`,
    mover: { width: 34, height: 94, svg: PERSON.replace('#d9a21b', '#3f6fa8') },
    x: "'300+40*sin(t*0.63)'",
    y: "'176+2*sin(t*9)'",
  },
];

/** Ten seconds of a scene, with the noise of a camera. */
export async function mediaOf(scene: Scene, browser: Browser): Promise<VideoMedia> {
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-scene-'));
  try {
    const { background, mover, x, y } = scene;
    await draw(browser, background, WIDTH, HEIGHT, join(directory, 'background.png'));
    await draw(browser, mover.svg, mover.width, mover.height, join(directory, 'mover.png'));
    const input = (name: string): string[] => ['-loop', '1', '-r', `${FRAMES_PER_SECOND}`, '-i', join(directory, name)];
    const filter = `[0][1]overlay=x=${x}:y=${y},noise=alls=5:allf=t,format=yuv420p`;
    const encoder = `-c:v libx264 -preset veryfast -crf 27 -profile:v baseline -threads 1 -x264-params`.split(' ');
    const path = join(directory, 'scene.h264');
    const inputs = [...input('background.png'), ...input('mover.png'), '-filter_complex', filter, '-t', `${SECONDS}`];
    const output = [...encoder, `keyint=${FRAMES_PER_SECOND}:scenecut=0:aud=1`, '-f', 'h264', path];
    execFileSync('ffmpeg', ['-v', 'error', '-nostdin', ...inputs, ...output]);
    const frames = framesOf(readFileSync(path));
    return { kind: 'video', codec: 'h264', width: WIDTH, height: HEIGHT, framesPerSecond: FRAMES_PER_SECOND, frames };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function draw(browser: Browser, content: string, width: number, height: number, path: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width, height } });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${content}</svg>`;
  await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${svg}`);
  await page.screenshot({ path, omitBackground: true });
  await page.close();
}

/** The pictures of a stream whose access units begin with a delimiter. */
function framesOf(stream: Buffer): VideoFrame[] {
  const units: Buffer[][] = [];
  for (const nal of splitAnnexB(stream)) {
    if (nalType(nal, 'h264') === ACCESS_UNIT_DELIMITER) units.push([]);
    else units.at(-1)?.push(nal);
  }
  return units.map((nals, number) => ({
    nals,
    number,
    pts90k: number * TICKS,
    dts90k: number * TICKS,
    key: nals.some((nal) => nalType(nal, 'h264') === 5),
  }));
}
