// Every test picture carries its number in 16 squares of luma; from a recorded file the numbers can be read back.
//
//  +--+--+--+--+ ... +--+  top ninth of the picture: 12 bits of number, least first, then 4 bits of check;
//  |b0|b1|b2|  |     |15|  a white square is a 1
//  +--+--+--+--+ ... +--+
//  |  moving pattern    |

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Numbers wrap here: 12 bits. */
const FRAME_NUMBERS = 4096;
const SQUARES = 16;
/** What a picture is reported as whose squares do not agree with their check: damaged, or not one of ours. */
const UNREADABLE = -1;

const checkOf = (number: number): number =>
  (number * 5 + Math.floor(number / 16) * 3 + Math.floor(number / 256) * 7 + 9) % 16;

/** ffmpeg's `geq` expression that draws the squares and, below them, something that moves. */
export function drawingExpression(firstNumber: number): string {
  const number = `(N+${firstNumber})`;
  const check = `mod(${number}*5+floor(${number}/16)*3+floor(${number}/256)*7+9,16)`;
  const bit = `bitand(${number}+${FRAME_NUMBERS}*${check},pow(2,floor(X*${SQUARES}/W)))`;
  return `if(lt(Y,H/9),if(${bit},235,16),128+60*sin((X+3*N)/25)*cos((Y+N)/17)+24*random(0))`;
}

interface DecodedPictures {
  /** In output order; `UNREADABLE` for a damaged one. */
  readonly numbers: number[];
  /** What ffmpeg had to say about picture and sound: nothing for a good file. */
  readonly complaints: string;
}

/** As many as one ffmpeg decodes: its start takes longer than most files. */
const FILES_AT_A_TIME = 16;
const INPUT = ['-nostdin', '-v', 'error', '-y'];

/** What ffmpeg makes of its input number `input`: the luma of the squares at `output`, and all else nowhere. */
function outputs(input: number, output: string): readonly string[] {
  const filter = `crop=iw:ih/9:0:0,scale=${SQUARES}:1:flags=area,format=gray`;
  // Pictures may be one tick apart: no complaint about times that a coarser clock makes equal.
  const ticks = ['-enc_time_base', '1:90000'];
  const pictures = ['-map', `${input}:v:0`, '-vf', filter, '-vsync', '0', ...ticks, '-f', 'rawvideo', output];
  // A copy of the pictures beside the sound, because an output without any stream is an error.
  return [...pictures, '-map', `${input}:a?`, '-map', `${input}:v:0`, '-c:v', 'copy', '-f', 'framecrc', '/dev/null'];
}

/** Decodes all of a file, its sound as well, and reads the numbers of its pictures. */
export async function decodePictures(file: string, ffmpeg = 'ffmpeg'): Promise<DecodedPictures> {
  const { stdout, stderr } = await run(ffmpeg, [...INPUT, '-i', file, ...outputs(0, 'pipe:1')], {
    encoding: 'buffer',
    maxBuffer: 64 * 1024 * 1024,
  });
  return { numbers: readNumbers(stdout), complaints: stderr.toString().trim() };
}

/** The same of many files, with fewer processes; `numbers` of each file, and `complaints` of all, which name the file. */
export async function decodeFiles(
  files: readonly string[],
): Promise<{ readonly numbers: readonly (readonly number[])[]; readonly complaints: string }> {
  const numbers: (readonly number[])[] = [];
  const complaints: string[] = [];
  const directory = await mkdtemp(join(tmpdir(), 'kube-nvr-pictures-'));
  try {
    for (let first = 0; first < files.length; first += FILES_AT_A_TIME) {
      const some = files.slice(first, first + FILES_AT_A_TIME);
      const made = some.map((_, i) => join(directory, `${i}`));
      const inputs = some.flatMap((file) => ['-i', file]);
      const { stderr } = await run('ffmpeg', [...INPUT, ...inputs, ...made.flatMap((to, i) => outputs(i, to))]);
      for (const to of made) numbers.push(readNumbers(await readFile(to)));
      if (stderr.trim() === '') continue;
      complaints.push(stderr.trim());
      // Which of them it is about.
      for (const file of some) {
        const { complaints: own } = await decodePictures(file);
        if (own !== '') complaints.push(`${file}: ${own}`);
      }
    }
  } finally {
    await rm(directory, { recursive: true });
  }
  return { numbers, complaints: complaints.join('\n') };
}

/** The numbers of all pictures of a file in output order; `UNREADABLE` for a damaged one. */
export async function decodeFrameNumbers(file: string, ffmpeg = 'ffmpeg'): Promise<number[]> {
  return (await decodePictures(file, ffmpeg)).numbers;
}

function readNumbers(luma: Buffer): number[] {
  const numbers: number[] = [];
  for (let at = 0; at + SQUARES <= luma.length; at += SQUARES) numbers.push(readNumber(luma, at));
  return numbers;
}

function readNumber(luma: Buffer, at: number): number {
  let code = 0;
  for (let i = 0; i < SQUARES; i++) if ((luma[at + i] as number) >= 128) code += 2 ** i;
  const number = code % FRAME_NUMBERS;
  return Math.floor(code / FRAME_NUMBERS) === checkOf(number) ? number : UNREADABLE;
}
