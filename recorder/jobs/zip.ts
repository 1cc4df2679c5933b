// Writes and reads ZIP files without compression (APPNOTE.TXT of PKWARE), in which each movie is stored unchanged. So a
// result is one file, and a range of it is one movie. All sizes have 64 bits (§4.3.9.2, §4.5.3).

/** One file in the ZIP file. */
export interface ZipEntry {
  readonly name: string;
  readonly size: number;
  readonly crc32: number;
  /** Position of its local header. */
  readonly offset: number;
  readonly modified: Date;
}

const VERSION = 45; // 64-bit sizes
const UNKNOWN_32 = 0xffffffff;
const LOCAL_BYTES = 30;
const LOCAL_EXTRA_BYTES = 20;

/** The length of the local header, which the bytes of the entry follow. */
export const localHeaderBytes = (name: string): number => LOCAL_BYTES + Buffer.byteLength(name) + LOCAL_EXTRA_BYTES;

/** Bit 11 says that the name is UTF-8 (appendix D.1). */
const flagsOf = (name: string): number => (Buffer.byteLength(name) === name.length ? 0 : 0x0800);

/** §4.3.7 */
export function localHeader({ name, size, crc32, modified }: ZipEntry): Buffer {
  const header = Buffer.alloc(localHeaderBytes(name));
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(VERSION, 4);
  const nameBytes = Buffer.byteLength(name);
  header.writeUInt16LE(flagsOf(name), 6);
  writeCommon(header, 6, { crc32, modified });
  header.writeUInt16LE(nameBytes, 26);
  header.writeUInt16LE(LOCAL_EXTRA_BYTES, 28);
  header.write(name, LOCAL_BYTES);
  writeExtra(header, LOCAL_BYTES + nameBytes, [size, size]);
  return header;
}

/**
 * The central directory and end records, which follow the last entry (§4.3.12, §4.3.14 to §4.3.16). `offset`: their
 * position in the file.
 */
export function centralDirectory(entries: readonly ZipEntry[], offset: number): Buffer {
  const directory = Buffer.concat(entries.map(directoryEntry));
  const end = Buffer.alloc(56 + 20 + 22);
  const count = entries.length;
  end.writeUInt32LE(0x06064b50, 0);
  end.writeBigUInt64LE(44n, 4); // size of the rest of this record
  end.writeUInt16LE(VERSION, 12);
  end.writeUInt16LE(VERSION, 14);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(directory.length), 40);
  end.writeBigUInt64LE(BigInt(offset), 48);
  end.writeUInt32LE(0x07064b50, 56);
  end.writeBigUInt64LE(BigInt(offset + directory.length), 64);
  end.writeUInt32LE(1, 72);
  end.writeUInt32LE(0x06054b50, 76);
  end.writeUInt16LE(count, 84);
  end.writeUInt16LE(count, 86);
  end.writeUInt32LE(directory.length, 88);
  end.writeUInt32LE(UNKNOWN_32, 92);
  return Buffer.concat([directory, end]);
}

function directoryEntry({ name, size, crc32, offset, modified }: ZipEntry): Buffer {
  const extraBytes = LOCAL_EXTRA_BYTES + 8;
  const nameBytes = Buffer.byteLength(name);
  const entry = Buffer.alloc(46 + nameBytes + extraBytes);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE((3 << 8) | VERSION, 4); // made on UNIX
  entry.writeUInt16LE(VERSION, 6);
  entry.writeUInt16LE(flagsOf(name), 8);
  writeCommon(entry, 8, { crc32, modified });
  entry.writeUInt16LE(nameBytes, 28);
  entry.writeUInt16LE(extraBytes, 30);
  entry.writeUInt32LE((0o100644 << 16) >>> 0, 38);
  entry.writeUInt32LE(UNKNOWN_32, 42);
  entry.write(name, 46);
  writeExtra(entry, 46 + nameBytes, [size, size, offset]);
  return entry;
}

/** Flags, method, time, checksum; the sizes are in the extra field. */
function writeCommon(to: Buffer, at: number, { crc32, modified }: Pick<ZipEntry, 'crc32' | 'modified'>): void {
  const date = ((modified.getUTCFullYear() - 1980) << 9) | ((modified.getUTCMonth() + 1) << 5) | modified.getUTCDate();
  const time = (modified.getUTCHours() << 11) | (modified.getUTCMinutes() << 5) | (modified.getUTCSeconds() >> 1);
  to.writeUInt16LE(time, at + 4);
  to.writeUInt16LE(date & 0xffff, at + 6);
  to.writeUInt32LE(crc32, at + 8);
  to.writeUInt32LE(UNKNOWN_32, at + 12);
  to.writeUInt32LE(UNKNOWN_32, at + 16);
}

/** Zip64 extended information (§4.5.3). */
function writeExtra(to: Buffer, at: number, values: readonly number[]): void {
  to.writeUInt16LE(1, at);
  to.writeUInt16LE(8 * values.length, at + 2);
  for (const [i, value] of values.entries()) to.writeBigUInt64LE(BigInt(value), at + 4 + 8 * i);
}

/** Reads bytes of a ZIP file; fewer only at its end. */
type ReadZip = (offset: number, length: number) => Promise<Buffer>;

const END_BYTES = 56 + 20 + 22;
/** Enough for thousands of movies. */
const MAX_DIRECTORY_BYTES = 16 * 1024 * 1024;

/** Whether a file is a ZIP file of a recorder, even if one of its ends is damaged. */
export async function looksLikeZip(read: ReadZip, size: number): Promise<boolean> {
  const [first, last] = [await read(0, 4), await read(Math.max(0, size - END_BYTES), END_BYTES)];
  const begins = first.equals(Buffer.from('PK\u0003\u0004'));
  return begins || (last.length === END_BYTES && last.readUInt32LE(76) === 0x06054b50);
}

/** The position of the bytes of an entry, from the central directory or, if that is damaged, from the local headers. */
export async function findEntry(
  read: ReadZip,
  size: number,
  name: string,
): Promise<{ readonly offset: number; readonly size: number } | undefined> {
  for (const entries of [entriesInDirectory, entriesInOrder]) {
    for await (const entry of entries(read, size)) if (entry.name === name) return entry;
  }
  return undefined;
}

interface FoundEntry {
  readonly name: string;
  /** Position of its bytes. */
  readonly offset: number;
  readonly size: number;
}

async function* entriesInDirectory(read: ReadZip, size: number): AsyncGenerator<FoundEntry> {
  const end = await read(Math.max(0, size - END_BYTES), END_BYTES);
  if (end.length < END_BYTES) return;
  const [length, offset] = [Number(end.readBigUInt64LE(40)), Number(end.readBigUInt64LE(48))];
  if (offset + length > size || length > MAX_DIRECTORY_BYTES) return;
  const directory = await read(offset, length);
  for (let at = 0; at + 46 <= directory.length && directory.readUInt32LE(at) === 0x02014b50;) {
    const [nameBytes, extraBytes] = [directory.readUInt16LE(at + 28), directory.readUInt16LE(at + 30)];
    const extra = at + 46 + nameBytes;
    if (extraBytes < 28 || extra + extraBytes > directory.length) return;
    const name = directory.toString('utf8', at + 46, extra);
    const header = Number(directory.readBigUInt64LE(extra + 20));
    const bytes = Number(directory.readBigUInt64LE(extra + 4));
    const start = header + LOCAL_BYTES + nameBytes + LOCAL_EXTRA_BYTES;
    if (start + bytes <= size) yield { name, offset: start, size: bytes };
    at = extra + extraBytes;
  }
}

async function* entriesInOrder(read: ReadZip, size: number): AsyncGenerator<FoundEntry> {
  for (let at = 0; at + LOCAL_BYTES <= size;) {
    const header = await read(at, LOCAL_BYTES);
    if (header.readUInt32LE(0) !== 0x04034b50) return;
    const rest = await read(at + LOCAL_BYTES, header.readUInt16LE(26) + LOCAL_EXTRA_BYTES);
    const nameBytes = rest.length - LOCAL_EXTRA_BYTES;
    if (nameBytes < 0 || nameBytes !== header.readUInt16LE(26)) return;
    const bytes = Number(rest.readBigUInt64LE(nameBytes + 4));
    const offset = at + LOCAL_BYTES + rest.length;
    if (offset + bytes > size) return;
    yield { name: rest.toString('utf8', 0, nameBytes), offset, size: bytes };
    at = offset + bytes;
  }
}
