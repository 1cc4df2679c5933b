// Counts of what a camera does wrong, by a short constant name.

export class Faults {
  readonly counts = new Map<string, number>();

  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}
