// Every test picture carries its number in 16 squares of luma; from a recorded file the numbers can be read back.
//
//  +--+--+--+--+ ... +--+  top ninth of the picture: 12 bits of number, least first, then 4 bits of check;
//  |b0|b1|b2|  |     |15|  a white square is a 1
//  +--+--+--+--+ ... +--+
//  |  moving pattern    |

import { execFile } from 'node:child_process';
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

/** Decodes all of a file, its sound as well, and reads the numbers of its pictures. */
export async function decodePictures(file: string, ffmpeg = 'ffmpeg'): Promise<DecodedPictures> {
  const filter = `crop=iw:ih/9:0:0,scale=${SQUARES}:1:flags=area,format=gray`;
  const input = ['-nostdin', '-v', 'error', '-y', '-i', file];
  // Pictures may be one tick apart: no complaint about times that a coarser clock makes equal.
  const ticks = ['-enc_time_base', '1:90000'];
  const pictures = ['-map', '0:v:0', '-vf', filter, '-vsync', '0', ...ticks, '-f', 'rawvideo', 'pipe:1'];
  // A copy of the pictures beside the sound, because an output without any stream is an error.
  const sound = ['-map', '0:a?', '-map', '0:v:0', '-c:v', 'copy', '-f', 'framecrc', '/dev/null'];
  const { stdout, stderr } = await run(ffmpeg, [...input, ...pictures, ...sound], {
    encoding: 'buffer',
    maxBuffer: 64 * 1024 * 1024,
  });
  const numbers: number[] = [];
  for (let at = 0; at + SQUARES <= stdout.length; at += SQUARES) numbers.push(readNumber(stdout, at));
  return { numbers, complaints: stderr.toString().trim() };
}

/** The numbers of all pictures of a file in output order; `UNREADABLE` for a damaged one. */
export async function decodeFrameNumbers(file: string, ffmpeg = 'ffmpeg'): Promise<number[]> {
  return (await decodePictures(file, ffmpeg)).numbers;
}

function readNumber(luma: Buffer, at: number): number {
  let code = 0;
  for (let i = 0; i < SQUARES; i++) if ((luma[at + i] as number) >= 128) code += 2 ** i;
  const number = code % FRAME_NUMBERS;
  return Math.floor(code / FRAME_NUMBERS) === checkOf(number) ? number : UNREADABLE;
}
