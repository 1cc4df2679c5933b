// Counts the faults of a camera by a short constant name.

export class Faults {
  readonly counts = new Map<string, number>();

  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}
