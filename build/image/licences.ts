// Licences of what an image has besides npm packages, as SPDX expressions. Debian states them in free text, or for each file of a
// source package; these are of the programs and libraries that the image has, read in their copyright files, which are in the image.

const LICENCES: Readonly<Record<string, string>> = {
  // Without npm, which is not shipped: V8, ICU, OpenSSL, libuv, zlib, brotli and the others that its LICENSE lists.
  node: 'MIT AND Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND ISC AND Unicode-3.0 AND Zlib',
  // Built from LGPL and GPL parts with libx264 (ffmpeg.sh), which makes the whole GPL.
  ffmpeg: 'GPL-2.0-or-later',
  libatomic1: 'GPL-3.0-or-later WITH GCC-exception-3.1',
  libc6: 'LGPL-2.1-or-later AND BSD-3-Clause AND ISC',
  libcap2: 'BSD-3-Clause OR GPL-2.0-only',
  'libgcc-s1': 'GPL-3.0-or-later WITH GCC-exception-3.1',
  libgcrypt20: 'LGPL-2.1-or-later AND BSD-3-Clause',
  'libgpg-error0': 'LGPL-2.1-or-later',
  libjemalloc2: 'BSD-2-Clause AND BSD-3-Clause',
  'liblz4-1': 'BSD-2-Clause',
  liblzf1: 'BSD-2-Clause',
  // Its authors put it into the public domain, for which SPDX has no name.
  liblzma5: 'LicenseRef-public-domain',
  libsmartcols1: 'LGPL-2.1-or-later',
  libssl3: 'Apache-2.0',
  'libstdc++6': 'GPL-3.0-or-later WITH GCC-exception-3.1',
  libsystemd0: 'LGPL-2.1-or-later AND CC0-1.0 AND MIT',
  'libx264-164': 'GPL-2.0-or-later AND ISC',
  libzstd1: 'BSD-3-Clause OR GPL-2.0-only',
  'redis-server': 'BSD-3-Clause AND BSD-2-Clause AND MIT',
  'util-linux': 'GPL-2.0-or-later AND LGPL-2.1-or-later',
};

/** Throws if the licence of a part is not known. */
export function licenceOf(part: string): string {
  const licence = LICENCES[part];
  if (licence === undefined) {
    throw new Error(
      `no licence is known of ${part}: add it to build/image/licences.ts, from usr/share/doc/${part}/copyright`,
    );
  }
  return licence;
}

/** One expression of all of these: every licence once, sorted. */
export function allOf(expressions: readonly string[]): string {
  const terms = expressions.flatMap((expression) => expression.replace(/^\((.*)\)$/, '$1').split(/ AND (?![^(]*\))/));
  const sorted = [...new Set(terms)].sort((a, b) => (a < b ? -1 : 1));
  return sorted.map((term) => (term.includes(' OR ') ? `(${term.replace(/^\((.*)\)$/, '$1')})` : term)).join(' AND ');
}

/** Whether who passes a program on has to pass its source on as well. */
export const needsSource = (licence: string): boolean => /\bL?GPL-/.test(licence) && !licence.includes(' OR ');
