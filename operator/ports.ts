// Ports in the arguments of the operator.

/** Throws for what is not a port, with the name of the option. */
export function portsOf(option: string, values: readonly string[]): readonly number[] {
  return values.map((text) => {
    const port = Number(text);
    if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port;
    throw new Error(`${option} ${text}: expected a port, from 1 to 65535`);
  });
}
