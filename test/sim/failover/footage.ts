// Which time of each camera is on the disk of some node, in true time.

interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
}

export class Footage {
  readonly #written = new Map<string, (Stretch & { readonly node: string })[]>();
  readonly #open = new Map<string, { readonly camera: string; readonly node: string; readonly fromMs: number }>();

  /** The node writes the camera, from pictures of `fromMs` on. */
  begins(node: string, camera: string, fromMs: number): void {
    const key = `${node}/${camera}`;
    if (!this.#open.has(key)) this.#open.set(key, { camera, node, fromMs });
  }

  /** The last picture on its disk is of `toMs`. */
  ends(node: string, camera: string, toMs: number): void {
    const key = `${node}/${camera}`;
    const open = this.#open.get(key);
    if (!open) return;
    this.#open.delete(key);
    const written = this.#written.get(camera) ?? [];
    this.#written.set(camera, written);
    written.push({ node, fromMs: open.fromMs, toMs });
  }

  /** Time of [fromMs, toMs) that is on no disk. */
  missing(camera: string, fromMs: number, toMs: number): readonly Stretch[] {
    const open = [...this.#open.values()].filter((one) => one.camera === camera);
    const all = [...(this.#written.get(camera) ?? []), ...open.map((one) => ({ ...one, toMs: Infinity }))];
    const holes: Stretch[] = [];
    let untilMs = fromMs;
    for (const stretch of all.toSorted((a, b) => a.fromMs - b.fromMs)) {
      if (stretch.fromMs > untilMs) holes.push({ fromMs: untilMs, toMs: Math.min(stretch.fromMs, toMs) });
      untilMs = Math.max(untilMs, stretch.toMs);
      if (untilMs >= toMs) return holes;
    }
    return untilMs < toMs ? [...holes, { fromMs: untilMs, toMs }] : holes;
  }
}
