// An image of the node under another name, whose package.json says another version: what stands in for an older release.
// Only the layer that differs is made and brought to the node; the others are there already.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RealNode } from './real-node.ts';

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** OCI image manifest; that of Docker has the same fields. */
interface ImageManifest {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

interface ImageConfig {
  readonly config: { readonly WorkingDir?: string };
  readonly rootfs: { readonly type: string; readonly diff_ids: readonly string[] };
  readonly history?: unknown;
}

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';

/** `image` and `name` are of the form `repository:version`, of no registry. */
export async function addOlderImage(node: RealNode, image: string, name: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'kube-nvr-older-'));
  try {
    const read = (digest: string): unknown => JSON.parse(node.ctr('content', 'get', digest));
    const manifest = read(digestOf(node, image)) as ImageManifest;
    const { history: _asLongAsLayers, ...config } = read(manifest.config.digest) as ImageConfig;
    const blobs = join(scratch, 'blobs/sha256');
    mkdirSync(blobs, { recursive: true });
    const blob = (mediaType: string, bytes: Buffer): Descriptor => {
      const hash = createHash('sha256').update(bytes).digest('hex');
      writeFileSync(join(blobs, hash), bytes);
      return { mediaType, digest: `sha256:${hash}`, size: bytes.length };
    };
    const json = (mediaType: string, value: unknown): Descriptor => blob(mediaType, Buffer.from(JSON.stringify(value)));
    const layer = blob(manifest.layers[0]!.mediaType, layerOf(scratch, config.config.WorkingDir ?? '/', name));
    const rootfs = { ...config.rootfs, diff_ids: [...config.rootfs.diff_ids, layer.digest] };
    const older = json(MANIFEST_TYPE, {
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: json(manifest.config.mediaType, { ...config, rootfs }),
      layers: [...manifest.layers, layer],
    });
    const annotations = { 'io.containerd.image.name': `docker.io/library/${name}` };
    const index = { schemaVersion: 2, manifests: [{ ...older, annotations }] };
    writeFileSync(join(scratch, 'index.json'), JSON.stringify(index));
    writeFileSync(join(scratch, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    const archive = join(scratch, 'older.tar');
    execFileSync('tar', ['-C', scratch, '-cf', archive, 'oci-layout', 'index.json', 'blobs'], { stdio: 'pipe' });
    await node.importImages(archive);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function digestOf(node: RealNode, image: string): string {
  const line = node
    .ctr('images', 'ls', `name==docker.io/library/${image}`)
    .split('\n')
    .find((line) => line.includes('sha256:'));
  if (line === undefined) throw new Error(`${node.name} has no image ${image}`);
  return /sha256:\w+/.exec(line)![0];
}

/** A tar, not compressed, so that its digest is that of what is in it, too. */
function layerOf(scratch: string, directory: string, name: string): Buffer {
  const root = join(scratch, 'root');
  const path = join('.', directory, 'package.json');
  mkdirSync(join(root, directory), { recursive: true });
  const version = name.split(':').at(-1);
  writeFileSync(join(root, path), JSON.stringify({ name: 'kube-nvr', version, license: 'Apache-2.0', type: 'module' }));
  const file = join(scratch, 'layer.tar');
  execFileSync('tar', ['-C', root, '--owner=0', '--group=0', '-cf', file, path], { stdio: 'pipe' });
  return readFileSync(file);
}
